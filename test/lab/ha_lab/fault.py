# SPDX-License-Identifier: BSD-3-Clause
"""Faults: what a command means, and how each shape puts it in force."""

from . import LabError

RAILS = ("a", "b")
HOSTS = (1, 2)
CARD_KINDS = ("unplug", "plug", "unbind", "bind")
# kind → (needs a value, may do without a host)
KINDS = {
    "down": (None, False), "up": (None, True),
    "carrier-off": (None, False), "carrier-on": (None, True),
    "unplug": (None, False), "plug": (None, False), "unbind": (None, False), "bind": (None, False),
    "drop": (None, True), "drop-from": (None, False), "acks": (None, True),
    "loss": ("PERCENT", True), "delay": ("MS", True), "after": ("FRAMES", False), "control": ("PERCENT", True),
    "clear": (None, True),
}
HELP = """kinds:
  down, up HOST          the host's own network device (up: both without HOST)
  carrier-off, -on HOST  the cable is pulled out of that host's port (carrier-on: both without HOST)
  unplug, plug HOST      shape two: the host's network card is taken out of its PCI slot, and put back in
  unbind, bind HOST      shape two: the network card's driver lets it go, and takes it anew
  drop [HOST]            frames vanish silently, in both directions, or only those that HOST sends
  drop-from HOST         the same as drop HOST
  acks [HOST]            only RoCE acknowledgements and read responses (that HOST sends) vanish
  loss [HOST] PERCENT    frames are lost at random
  delay [HOST] MS        frames arrive that much later
  control [HOST] PERCENT shape two: only RoCE datagrams are lost at random: the transport's control packets
  after HOST FRAMES      shape two: FRAMES more RoCE frames from HOST pass, then none
  clear [RAIL] [HOST]    everything normal again; without RAIL on both"""


class Fault:
    """One parsed command: kind, rails, hosts, value."""

    def __init__(self, kind, rails, hosts, value):
        self.kind, self.rails, self.hosts, self.value = kind, rails, hosts, value

    def __str__(self):
        return " ".join([self.kind, "+".join(self.rails), "+".join(f"h{h}" for h in self.hosts)] +
                        ([] if self.value is None else [f"{self.value:g}"]))


def _number(kind, unit, word):
    try:
        value = float(word)
    except ValueError:
        raise LabError(f"fault {kind}: '{word}' is not a number of {unit}") from None
    limit = {"PERCENT": 100, "MS": 10000, "FRAMES": 1e9}[unit]
    if not 0 <= value <= limit:
        raise LabError(f"fault {kind}: {word} is out of range, 0 to {limit:g} {unit}")
    return value


def parse(words):
    """Fault from the command's words; complains in terms of the user."""
    kind, rest = words[0], list(words[1:])
    if kind not in KINDS:
        raise LabError(f"no fault kind '{kind}'; there are {', '.join(KINDS)}")
    unit, all_hosts = KINDS[kind]
    if rest and rest[0] in RAILS + ("all",):
        word = rest.pop(0)
        rails = RAILS if word == "all" else (word,)
    elif kind == "clear" and not rest:
        rails = RAILS
    else:
        raise LabError(f"fault {kind}: say which rail, a, b or all" + (f", not '{rest[0]}'" if rest else ""))
    hosts = None
    if rest and rest[0] in ("h1", "h2", "both"):
        word = rest.pop(0)
        hosts = HOSTS if word == "both" else (int(word[1]),)
    elif all_hosts:
        hosts = HOSTS
    if hosts is None:
        raise LabError(f"fault {kind}: say which host, h1, h2 or both" + (f", not '{rest[0]}'" if rest else ""))
    value = None
    if unit:
        if not rest:
            raise LabError(f"fault {kind}: say how many {unit}")
        value = _number(kind, unit, rest.pop(0))
        if rest and rest[0] in ("h1", "h2", "both"):  # the value first, then the host: as good
            word = rest.pop(0)
            hosts = HOSTS if word == "both" else (int(word[1]),)
    if rest:
        raise LabError(f"fault {kind}: '{' '.join(rest)}' is too much")
    return Fault(kind, rails, hosts, value)


class Lanes:
    """What happens to frames, per rail and sending host."""

    NORMAL = {"drop": 0, "acks": 0, "loss": 0.0, "delay": 0.0, "after": -1, "control": 0.0}

    def __init__(self):
        self.lanes = {(rail, host): dict(self.NORMAL) for rail in RAILS for host in HOSTS}
        self.installed = {}  # shape one: what hangs in the switch, per lane

    def apply(self, fault):
        """Changes the state; returns the lanes concerned."""
        touched = [(rail, host) for rail in fault.rails for host in fault.hosts]
        for key in touched:
            lane = self.lanes[key]
            if fault.kind == "clear":
                lane.update(self.NORMAL)
            elif fault.kind in ("drop", "drop-from"):
                lane["drop"] = 1
            elif fault.kind == "acks":
                lane["acks"] = 1
            elif fault.kind == "after":
                lane["after"] = int(fault.value)
            else:
                lane[fault.kind] = fault.value
        return touched

    def cable_command(self, key):
        lane = self.lanes[key]
        return f"set {key[0]} {key[1]} " + " ".join(f"{name} {value:g}" for name, value in lane.items())

    def switch_commands(self, key):
        """Shape one: the same by traffic control. From the host in at its port (drop, acks), out at the other's (loss, delay)."""
        lane, (rail, host) = self.lanes[key], key
        inward, outward = f"p{rail}{host}", f"p{rail}{3 - host}"
        lines = [f"qdisc del dev {dev} {kind}" for dev, kind in self.installed.pop(key, ())]
        installed = []
        if lane["drop"] or lane["acks"]:
            lines.append(f"qdisc add dev {inward} ingress")
            installed.append((inward, "ingress"))
        add = f"filter add dev {inward} parent ffff:"
        if lane["drop"]:
            lines.append(f"{add} protocol all prio 1 matchall action drop")
        elif lane["acks"]:
            for value, mask in (("0x0d", "0xff"), ("0x0e", "0xfe"), ("0x10", "0xfe"), ("0x12", "0xff")):
                lines.append(f"{add} protocol ipv6 prio 2 u32 match u8 17 0xff at 6 match u16 4791 0xffff at 42 "
                             f"match u8 {value} {mask} at 48 action drop")
        if lane["loss"] or lane["delay"]:
            lines.append(f"qdisc add dev {outward} root netem limit 100000 loss {lane['loss']:g}% delay {lane['delay']:g}ms")
            installed.append((outward, "root"))
        if installed:
            self.installed[key] = installed
        return lines

    def switch_script(self, keys):
        """One tc for all: under emulation every process counts."""
        lines = [line for key in keys for line in self.switch_commands(key)]
        return "tc -n switch -batch - << 'EOF'\n" + "\n".join(lines) + "\nEOF\n" if lines else ""

    def abnormal(self):
        return {f"{rail} from h{host}": {k: v for k, v in lane.items() if v != self.NORMAL[k]}
                for (rail, host), lane in self.lanes.items() if lane != self.NORMAL}


# The kernel forgets a card only when the last process has let go of its RDMA device, and that is not waited for.
UNPLUG = """
card=$(readlink -f /sys/class/net/{device}/device/..)
[ -e "$card/remove" ] || {{ echo "{device} is in no PCI slot"; exit 1; }}
(echo 1 > "$card/remove") > /dev/null 2>&1 < /dev/null &
"""
PLUG = """
timeout 15 sh -c 'echo 1 > /sys/bus/pci/rescan' || {{ echo "the old card of {device} is still in use: end its programs"; exit 1; }}
"""
UNBIND = """
card=$(basename "$(readlink -f /sys/class/net/{device}/device)")
[ -e "/sys/bus/virtio/drivers/virtio_net/$card" ] || {{ echo "{device} has no driver to take off"; exit 1; }}
echo "$card" > /run/unbound-{device}
(echo "$card" > /sys/bus/virtio/drivers/virtio_net/unbind; echo over > /run/unbound-{device}.over) > /dev/null 2>&1 < /dev/null &
"""
BIND = """
i=0
until [ -e /run/unbound-{device}.over ]; do
    i=$((i + 1))
    [ $i -le 150 ] || {{ echo "the driver of {device} is still in use: end its programs"; exit 1; }}
    sleep 0.1
done
rm /run/unbound-{device}.over
cat /run/unbound-{device} > /sys/bus/virtio/drivers/virtio_net/bind || exit 1
"""
PLUGGED = """
ip -batch - << 'EOF' || exit 1
link set {device} mtu 4300
addr replace 10.77.{net}.{host}/24 dev {device}
link set {device} up
EOF
rdma link add rxe_{rail} type rxe netdev {device} || exit 1
"""
WAIT = """
i=0
until [ {not_}-e /sys/class/net/{device} ]; do
    i=$((i + 1))
    [ $i -le 100 ] || {{ echo "{device} is {state} after 10 s"; exit 1; }}
    sleep 0.1
done
"""


def card_script(fault, host):
    """Commands in the guest that take a card out or put it back (shape two)."""
    script = ""
    for rail in fault.rails if fault.kind in CARD_KINDS else ():
        words = {"rail": rail, "device": {"a": "eth0", "b": "eth1"}[rail], "net": {"a": 1, "b": 2}[rail], "host": host}
        if fault.kind in ("unplug", "unbind"):
            away = UNPLUG if fault.kind == "unplug" else UNBIND
            script += away.format(**words) + WAIT.format(not_="! ", state="still there", **words)
        else:
            back = PLUG if fault.kind == "plug" else BIND
            script += back.format(**words) + WAIT.format(not_="", state="not back", **words) + PLUGGED.format(**words)
    return script


def device_script(shape, fault, host):
    """Commands in the guest for the kinds that act on the host's own device, or on its switch port in shape one."""
    own, switch = [], []
    for rail in fault.rails:
        device = {"a": "eth0", "b": "eth1"}[rail] if shape == "two" else f"v{rail}{host}"
        if fault.kind in ("down", "up", "clear"):
            own.append(f"link set {device} {'down' if fault.kind == 'down' else 'up'}")
        if fault.kind in ("carrier-off", "carrier-on", "clear") and shape == "one":
            switch.append(f"link set p{rail}{host} {'down' if fault.kind == 'carrier-off' else 'up'}")
    script = ""
    for program, lines in (("ip -n switch", switch), ("ip", own)):
        if lines:
            script += f"{program} -batch - << 'EOF' || exit 1\n" + "\n".join(lines) + "\nEOF\n"
    return script + card_script(fault, host)
