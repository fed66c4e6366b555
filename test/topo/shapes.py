#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes made-up machines as hwloc XML, one file per shape: shapes.py FOLDER. Prints their names, in the order of the documentation.

They are what `lstopo --of xml` would write there, less what has nothing to do with I/O. No real machine was copied."""

import os
import sys
from xml.sax.saxutils import quoteattr


class Machine:
    """Collects objects; every one needs a number of its own."""

    def __init__(self):
        self.lines, self.count, self.depth = [], 0, 0

    def open(self, kind, /, **attributes):
        self.count += 1
        text = "".join(f" {name}={quoteattr(str(value))}" for name, value in attributes.items())
        self.lines.append("  " * self.depth + f'<object type="{kind}"{text} gp_index="{self.count}">')
        self.depth += 1

    def close(self, times=1):
        for _ in range(times):
            self.depth -= 1
            self.lines.append("  " * self.depth + "</object>")

    def info(self, name, value):
        self.lines.append("  " * self.depth + f"<info name={quoteattr(name)} value={quoteattr(str(value))}/>")

    def text(self):
        return ('<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">\n'
                + "\n".join(self.lines) + "\n</topology>\n")


def sets(nodes):
    """One processor and one memory per NUMA node; an object has those of its nodes."""
    mask = f"0x{sum(1 << node for node in nodes):08x}"
    return dict(cpuset=mask, complete_cpuset=mask, nodeset=mask, complete_nodeset=mask)


def memory(machine, node):
    machine.open("NUMANode", os_index=node, local_memory=1 << 34, **sets([node]))
    machine.close()


def processor(machine, node):
    machine.open("Core", os_index=node, **sets([node]))
    machine.open("PU", os_index=node, **sets([node]))
    machine.close(2)


def host_bridge(machine, first, last, domain=0):
    machine.open("Bridge", bridge_type="0-1", depth=0, bridge_pci=f"{domain:04x}:[{first:02x}-{last:02x}]")


def pci_bridge(machine, bus, device, first, last, depth=1):
    machine.open("Bridge", bridge_type="1-1", depth=depth, bridge_pci=f"0000:[{first:02x}-{last:02x}]",
                 pci_busid=f"0000:{bus:02x}:{device:02x}.0", pci_type="0604 [8086:347a] [8086:0000] 04", pci_link_speed="15.753846")


def gpu(machine, bus):
    machine.open("PCIDev", pci_busid=f"0000:{bus:02x}:00.0", pci_type="0302 [10de:2330] [10de:16c1] a1", pci_link_speed="31.507692")
    machine.close()


def function(machine, name, bus, number, card, ports, slot=0):
    """A PCI function with an RDMA device; ports: (state, lid) of each. Functions of one card share the system image."""
    machine.open("PCIDev", pci_busid=f"0000:{bus:02x}:{slot:02x}.{number}", pci_type="0207 [15b3:1021] [15b3:0023] 00", pci_link_speed="31.507692")
    machine.open("OSDev", name=name, osdev_type=3)
    machine.info("NodeGUID", f"a088:c203:00{card:02x}:000{number}")
    machine.info("SysImageGUID", f"a088:c203:00{card:02x}:0000")
    for port, (state, lid) in enumerate(ports, 1):
        machine.info(f"Port{port}State", state)
        machine.info(f"Port{port}LID", hex(lid))
        machine.info(f"Port{port}LMC", 0)
    machine.close(2)


ROCE, DOWN = (4, 0), (1, 0)


def infiniband(lid):
    return (4, lid)


def card(machine, names, bus, number, ports=None):
    """A card below a root port of its own: one function per name, one port each."""
    host_bridge(machine, bus, bus + 1)
    pci_bridge(machine, bus, 0, bus + 1, bus + 1)
    for index, name in enumerate(names):
        function(machine, name, bus + 1, index, number, [ports[index] if ports else ROCE])
    machine.close(2)


def root(nodes):
    machine = Machine()
    machine.open("Machine", os_index=0, allowed_cpuset=sets(nodes)["cpuset"], allowed_nodeset=sets(nodes)["nodeset"], **sets(nodes))
    return machine


def socket(machine, index, nodes):
    machine.open("Package", os_index=index, **sets(nodes))
    if len(nodes) == 1:
        memory(machine, nodes[0])
        processor(machine, nodes[0])


def single_dual_port_card():
    machine = root([0])
    socket(machine, 0, [0])
    card(machine, ["mlx5_0", "mlx5_1"], 0x17, 1)
    machine.close(2)
    return machine


def two_cards_one_socket():
    machine = root([0])
    socket(machine, 0, [0])
    card(machine, ["mlx5_0"], 0x17, 1)
    card(machine, ["mlx5_1"], 0x31, 2)
    machine.close(2)
    return machine


def two_sockets_two_cards():
    """Each card has two InfiniBand ports on one device, as ConnectX-3 and before."""
    machine = root([0, 1])
    for index, name in enumerate(["mlx4_0", "mlx4_1"]):
        bus = 0x17 + 0x80 * index
        socket(machine, index, [index])
        host_bridge(machine, bus, bus + 1)
        pci_bridge(machine, bus, 0, bus + 1, bus + 1)
        function(machine, name, bus + 1, 0, index + 1, [infiniband(4 * index + 1), infiniband(4 * index + 2)])
        machine.close(3)
    machine.close()
    return machine


def eight_gpus_eight_nics():
    """Four PCI switches, each with two GPUs and two cards behind it."""
    machine = root([0, 1])
    for package in range(2):
        socket(machine, package, [package])
        for switch in (2 * package, 2 * package + 1):
            bus = 0x10 + 0x40 * switch
            host_bridge(machine, bus, bus + 9)
            pci_bridge(machine, bus, 1, bus + 1, bus + 9)
            pci_bridge(machine, bus + 1, 0, bus + 2, bus + 9, 2)
            for index in range(2):
                pci_bridge(machine, bus + 2, index, bus + 3 + index, bus + 3 + index, 3)
                gpu(machine, bus + 3 + index)
                machine.close()
            for index in range(2):
                number = 2 * switch + index
                pci_bridge(machine, bus + 2, 4 + index, bus + 5 + index, bus + 5 + index, 3)
                function(machine, f"mlx5_{number}", bus + 5 + index, 0, number + 1, [infiniband(number + 1)])
                machine.close()
            machine.close(3)
        machine.close()
    machine.close()
    return machine


def virtual_machine():
    """Two NUMA nodes, and devices handed through of which nobody knows to which node they belong."""
    machine = root([0, 1])
    for node in range(2):
        socket(machine, node, [node])
        machine.close()
    for index in range(3):
        host_bridge(machine, index, index, domain=index)
        machine.open("PCIDev", pci_busid=f"{index:04x}:{index:02x}:02.0", pci_type="0207 [15b3:101e] [15b3:0023] 00", pci_link_speed="0.000000")
        machine.open("OSDev", name=f"mlx5_{index}", osdev_type=3)
        machine.info("NodeGUID", f"0000:0000:0000:000{index + 1}")
        machine.info("SysImageGUID", f"a088:c203:0{index}00:0000")
        machine.info("Port1State", 4)
        machine.info("Port1LID", "0x0")
        machine.close(3)
    machine.close()
    return machine


def many_nics():
    """Six dual-port cards, sockets of two NUMA nodes; the second ports of two cards have no cable, one card is InfiniBand by itself."""
    machine = root([0, 1, 2, 3])
    number = 0
    for package in range(2):
        nodes = [2 * package, 2 * package + 1]
        socket(machine, package, nodes)
        for node in nodes:
            machine.open("Group", kind=1001, subkind=0, **sets([node]))
            memory(machine, node)
            processor(machine, node)
            for index in range(2 if node % 2 == 0 else 1):
                names = [f"mlx5_{2 * number}", f"mlx5_{2 * number + 1}"]
                ports = [ROCE, DOWN if number in (1, 3) else ROCE]
                if number == 5:
                    ports = [infiniband(11), infiniband(12)]
                card(machine, names, 0x10 + 0x20 * number + 2 * index, number + 1, ports)
                number += 1
            machine.close()
        machine.close()
    machine.close()
    return machine


def mixed_fabrics():
    """Two InfiniBand cards and two for Ethernet: they can never back each other."""
    machine = root([0, 1])
    for package in range(2):
        bus = 0x17 + 0x80 * package
        socket(machine, package, [package])
        card(machine, [f"mlx5_{2 * package}"], bus, 2 * package + 1, [infiniband(package + 1)])
        card(machine, [f"mlx5_{2 * package + 1}"], bus + 0x20, 2 * package + 2)
        machine.close()
    machine.close()
    return machine


SHAPES = [single_dual_port_card, two_cards_one_socket, two_sockets_two_cards, eight_gpus_eight_nics, virtual_machine, many_nics, mixed_fabrics]


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for shape in SHAPES:
        with open(os.path.join(folder, shape.__name__ + ".xml"), "w", encoding="utf-8") as file:
            file.write(shape().text())
        print(shape.__name__)


main()
