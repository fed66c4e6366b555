# SPDX-License-Identifier: BSD-3-Clause
"""What may happen to a rail, at random."""

import time

RAILS = ("a", "b")


class Faults:
    """What may happen to a rail. Each does its mischief, and leaves the rail well."""

    def __init__(self, lab, traffic, dice):
        self.lab, self.traffic, self.dice = lab, traffic, dice
        self.last_rail = "a"
        self.counts = {}
        self.kinds = {self.port_down: 4, self.bounce: 2, self.carrier: 3, self.silent: 3, self.one_way: 4, self.acks: 3,
                      self.loss: 2, self.slow: 1, self.flap: 1, self.stopped: 1, self.dark: 1}
        for kind in getattr(lab, "cannot", ()):
            del self.kinds[getattr(self, kind)]

    def host(self):
        return self.dice.choice(("h1", "h2"))

    def hold(self, most=2.0):
        time.sleep(self.dice.choice((0, self.dice.uniform(0, 0.3), self.dice.uniform(0, most))))

    def until_noticed(self, before):
        """Most faults last until somebody did something about them, some do not."""
        if self.dice.random() < 0.2:
            return self.hold(0.5)
        until = time.monotonic() + 4
        while self.traffic.total("failovers") == before and time.monotonic() < until:
            time.sleep(0.05)
        return self.hold(1.0)

    def around(self, make, unmake):
        before = self.traffic.total("failovers")
        self.lab.fault(*make)
        try:
            self.until_noticed(before)
        finally:
            self.lab.fault(*unmake)

    def port_down(self, rail):
        self.around(("down", rail, self.host()), ("up", rail))

    def carrier(self, rail):
        self.around(("carrier-off", rail, self.host()), ("carrier-on", rail))

    def silent(self, rail):
        self.around(("drop", rail), ("clear", rail))

    def one_way(self, rail):
        self.around(("drop-from", rail, self.host()), ("clear", rail))

    def acks(self, rail):
        self.around(("acks", rail, self.host()), ("clear", rail))

    def loss(self, rail):
        self.around(("loss", rail, self.dice.randint(1, 40)), ("clear", rail))

    def slow(self, rail):
        self.around(("delay", rail, self.dice.choice((5, 20, 100))), ("clear", rail))

    def bounce(self, rail):
        device = {"a": "eth0", "b": "eth1"}[rail]
        host = self.dice.choice((1, 2))
        if hasattr(self.lab, "bounce"):
            return self.lab.bounce(host, rail, self.dice.choice((0, 0.05, 0.2)))
        if self.lab.shape == "one":
            device = f"v{rail}{host}"
        self.lab.run(host, f"ip link set {device} down; sleep {self.dice.choice((0, 0.05, 0.2))}; ip link set {device} up")
        return None

    def flap(self, rail):
        for _ in range(self.dice.randint(2, 5)):
            self.bounce(rail)
            self.hold(0.3)

    def stopped(self, _):
        process = self.dice.choice(self.traffic.processes)
        process.signal("STOP", self.dice.uniform(0.2, 2.5), "CONT")

    def dark(self, _):
        try:
            self.lab.fault("drop", "all")
            time.sleep(self.dice.uniform(0, 2))
        finally:
            self.lab.fault("clear")

    def one(self):
        """The next one, mostly on the rail that was not hurt last."""
        if self.dice.random() < 0.75:
            self.last_rail = RAILS[1 - RAILS.index(self.last_rail)]
        kind = self.dice.choices(list(self.kinds), list(self.kinds.values()))[0]
        self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1
        kind(self.last_rail)
        if self.dice.random() < 0.75:
            self.traffic.wait_redundant(10)
        else:
            self.hold(0.5)
