"""The oracle of `isomer lint` on pipeline tables: verdict, makespan and activations.

It is an independent and naive simulation under each progress model: rounds over all ranks until
nothing changes.
"""

import csv
import re

ACTION = re.compile(r"(\d+)(F|I|W|B|UNSHARD|RESHARD|REDUCE_GRAD|SEND_F|RECV_F|SEND_B|RECV_B)(\d*)$")
COST = {"F": 1, "I": 1, "W": 1, "B": 2}
MODELS = ("buffered", "rendezvous", "stream", "serial")


def parse(cell):
    cell = cell.strip()
    parts = cell[1 : cell.index(")")].split(";") if cell.startswith("(") else [cell] if cell else []
    out = []
    for p in parts:
        s, op, m = ACTION.match(p.strip()).groups()
        out.append((int(s), op, int(m) if m else None))
    return out


def read(path):
    with open(path, newline="") as f:
        return [[a for cell in row for a in parse(cell)] for row in csv.reader(f)]


class Simulation:
    def __init__(self, rows, model):
        self.rows, self.model = rows, model
        self.owner = {s: r for r, row in enumerate(rows) for s, op, m in row if op in COST}
        self.stages = 1 + max(self.owner)
        self.comms = any("_" in op and op != "REDUCE_GRAD" for row in rows for _, op, _ in row)
        self.end = {}  # (rank, position): when it ended
        self.posted = {}
        self.host = [0] * len(rows)  # each rank's next action
        self.now = [0] * len(rows)
        self.order = [
            [i for i, a in enumerate(row) if a[1][:4] in ("SEND", "RECV")] for row in rows
        ]
        self.partner = self.match() if self.comms else {}

    def match(self):
        """The k-th message to a rank is the k-th that it receives from there."""
        sent, got, out = {}, {}, {}
        for r, row in enumerate(self.rows):
            for i in self.order[r]:
                s, op, _ = row[i]
                up = (op[:4] == "SEND") == (op[-1] == "F")
                peer = self.owner[s + 1 if up else s - 1]
                if op[:4] == "SEND":
                    sent.setdefault((r, peer), []).append((r, i))
                else:
                    got.setdefault((peer, r), []).append((r, i))
        for key in sent:
            for a, b in zip(sent[key], got[key]):
                out[a], out[b] = b, a
        return out

    def starts(self, at):
        """When a message may start: posted, and under the queue models the first of its rank's
        queue."""
        r, i = at
        if at not in self.posted:
            return None
        if self.model in ("buffered", "rendezvous"):
            return self.posted[at]
        k = self.order[r].index(i)
        if k == 0:
            return self.posted[at]
        before = self.end.get((r, self.order[r][k - 1]))
        return None if before is None else max(before, self.posted[at])

    def message(self, at):
        mine, other = self.starts(at), self.starts(self.partner[at])
        sends = self.rows[at[0]][at[1]][1][:4] == "SEND"
        if self.model == "buffered" and sends:
            return mine
        return None if mine is None or other is None else max(mine, other)

    def needs(self, rank, action):
        """Where the result that a computation needs comes from: a place, or None."""
        s, op, m = action
        if op == "W" or (op == "F" and s == 0) or (op in "IB" and s == self.stages - 1):
            return None
        other = s - 1 if op == "F" else s + 1
        ops = ("F",) if op == "F" else ("I", "B")
        if self.comms and self.owner[other] != rank:
            return next(
                (rank, i)
                for i, a in enumerate(self.rows[rank])
                if a == (s, "RECV_F" if op == "F" else "RECV_B", m)
            )
        return next(
            (r, i)
            for r, row in enumerate(self.rows)
            for i, a in enumerate(row)
            if a[0] == other and a[1] in ops and a[2] == m
        )

    def step(self, rank):
        i = self.host[rank]
        action = self.rows[rank][i]
        if action[1] in COST:
            need = self.needs(rank, action)
            if need is not None:
                if need not in self.end:
                    return False
                self.now[rank] = max(self.now[rank], self.end[need])
            self.now[rank] += COST[action[1]]
            self.end[rank, i] = self.now[rank]
        elif action[1][:4] in ("SEND", "RECV"):
            self.posted[rank, i] = self.now[rank]
        self.host[rank] += 1
        return True

    def run(self):
        moved = True
        while moved:
            moved = False
            for r, row in enumerate(self.rows):
                while self.host[r] < len(row) and self.step(r):
                    moved = True
            for r in range(len(self.rows)):
                for i in self.order[r]:
                    if (r, i) not in self.end and self.message((r, i)) is not None:
                        self.end[r, i] = self.message((r, i))
                        moved = True
        ends = all(h == len(row) for h, row in zip(self.host, self.rows)) and all(
            (r, i) in self.end for r in range(len(self.rows)) for i in self.order[r]
        )
        return max(self.end.values()) if ends else None


def simulate(rows, model):
    """Returns: the makespan, None where it hangs."""
    return Simulation(rows, model).run()


def activations(rows):
    out = []
    for row in rows:
        held = most = 0
        for _, op, _ in row:
            held += (op == "F") - (op in "BW")
            most = max(most, held)
        out.append(most)
    return out
