"""Changes to a certificate's text: its steps, rules, captures, order, bytes (certificates.py)."""

import json
import re


def some_ref(x, found):
    if isinstance(x, list):
        for i, y in enumerate(x):
            if isinstance(y, dict) and "ref" in y:
                found.append((x, i, "ref"))
            elif isinstance(y, list):
                some_ref(y, found)
            elif not isinstance(y, dict):
                found.append((x, i, "literal"))


def change_argument(doc, rng, kind):
    places = []
    for t in doc["terms"]:
        if "op" in t:
            some_ref(t["args"], places)
    places = [p for p in places if p[2] == kind]
    if not places:
        return False
    where, i, _ = rng.choice(places)
    old = where[i]
    if kind == "ref":
        where[i] = {"ref": rng.randrange(len(doc["terms"]))}
    elif isinstance(old, bool) or old is None:
        where[i] = rng.choice([True, False, None, 0, 1])
    elif isinstance(old, int):
        where[i] = old + rng.choice([-1, 1, 2, 1 << 20, -old])
    elif isinstance(old, float):
        where[i] = old * rng.choice([0, -1, 1 + 1e-6, 2]) + rng.choice([0, 1e-6])
    else:
        where[i] = rng.choice(["", "none", 0, None])
    return where[i] != old or type(where[i]) is not type(old)


def change_rule(doc, rng):
    i = rng.randrange(len(doc["rules"]))
    tokens = re.findall(r'"[^"]*"|[()]|[^\s()"]+|\s+', doc["rules"][i])
    spots = [k for k, t in enumerate(tokens) if k > 4 and not t.isspace()]
    k = rng.choice(spots)
    t = tokens[k]
    if re.fullmatch(r"-?\d+", t):
        tokens[k] = str(int(t) + rng.choice([-1, 1, 3]))
    elif re.fullmatch(r"-?[\d.]+(e-?\d+)?", t):
        tokens[k] = repr(float(t) * 1.5 + 0.25)
    elif t.startswith("aten::"):
        tokens[k] = rng.choice([x for x in re.findall(r"aten::[\w.]+", " ".join(doc["rules"]))])
    elif t in "()":
        tokens[k] = ""
    else:
        tokens[k] = rng.choice(["x", "y", "w", "1", "none", "tested", "proved", "f", "i"])
    was, doc["rules"][i] = doc["rules"][i], "".join(tokens)
    return doc["rules"][i] != was


def change_names(step, rng):
    """The values that a step gives to sizes and attributes."""
    names = step.get("names", {})
    if not names or rng.random() < 0.2:
        step["names"] = dict(
            names, **{rng.choice(["size0", "size9", "value0"]): rng.choice([1, 7, 0.5, [1, 2]])}
        )
        return step["names"] != names
    name = rng.choice(sorted(names))
    old, what = names[name], rng.randrange(4)
    if what == 0:
        del names[name]
        if not names and rng.random() < 0.5:
            del step["names"]
    elif what == 1:
        names[name] = rng.choice([None, "x", True, [old], {"ref": 0}, {"float": "inf"}, str(old)])
    elif isinstance(old, list):
        names[name] = old[:-1] if what == 2 else old + [1]
    elif isinstance(old, float):
        names[name] = old * rng.choice([1 + 1e-15, 1 + 1e-14, 2, -1]) if what == 2 else int(old)
    else:
        names[name] = old + rng.choice([-1, 1]) if what == 2 else float(old)
    return json.dumps(names.get(name)) != json.dumps(old)


def change_step(doc, rng):
    s = rng.choice(doc["steps"])
    n = len(doc["terms"])
    if "rule" in s:
        what = rng.randrange(4)
        if what == 0:
            s["rule"] = rng.randrange(len(doc["rules"]))
        elif what == 3:
            return change_names(s, rng)
        elif what == 1 and s["vars"]:
            s["vars"][rng.randrange(len(s["vars"]))] = rng.choice([None, rng.randrange(n)])
        else:
            s["terms"][rng.randrange(2)] = rng.randrange(n)
    else:
        ((kind, pair),) = s.items()
        if rng.random() < 0.25:
            del s[kind]
            s[rng.choice(["leaf", "value", "same", "bound", "mask", "rounding"])] = pair
        else:
            pair[rng.randrange(2)] = rng.randrange(n)
    return True


def change_captured(doc, rng):
    i = rng.choice([k for k, t in enumerate(doc["terms"]) if "op" not in t])
    other = rng.choice([t for t in doc["terms"] if "op" not in t])
    doc["terms"][i] = rng.choice(
        [other, {"left" if "right" in other else "right": list(other.values())[0]}]
    )
    return True


def change_op(doc, rng):
    calls = [t for t in doc["terms"] if "op" in t]
    rng.choice(calls)["op"] = rng.choice(calls)["op"]
    return True


def change_order(doc, rng):
    i, j = rng.randrange(len(doc["steps"])), rng.randrange(len(doc["steps"]))
    doc["steps"][i], doc["steps"][j] = doc["steps"][j], doc["steps"][i]
    return i != j


def change_output(doc, rng):
    o = rng.choice(doc["outputs"])
    what = rng.randrange(4)
    if what == 0:
        o["terms"][rng.randrange(2)] = rng.randrange(len(doc["terms"]))
    elif what == 1:
        o[rng.choice(["left", "right"])] += "x"
    elif what == 2:
        doc["outputs"].remove(o)
    else:
        o["terms"] = o["terms"][::-1]
    return True


def change_capture(doc, rng):
    side = doc[rng.choice(["left", "right"])]
    files = side["files"]
    if rng.random() < 0.2:
        side["model"] += rng.choice(["x", "-2", " "])
        return True
    name = rng.choice(sorted(files))
    if rng.random() < 0.3:
        del files[name]
    else:
        k = rng.randrange(64)
        files[name] = files[name][:k] + rng.choice("0123456789abcdefg") + files[name][k + 1 :]
    return True


def change_rest(doc, rng):
    what = rng.randrange(3)
    if what == 0:
        doc["evidence"] = rng.choice(["tested", "certified", "assumed", "", 1])
    elif what == 1:
        node = [t for t in doc["terms"] if "op" not in t]
        doc["fixed"].append(rng.choice(node))
    elif doc["fixed"]:
        doc["fixed"].pop(rng.randrange(len(doc["fixed"])))
    return True


def delete_entry(doc, rng):
    part = doc[rng.choice(["steps", "steps", "steps", "terms", "rules"])]
    part.pop(rng.randrange(len(part)))
    return True


def double_entry(doc, rng):
    part = doc[rng.choice(["steps", "terms", "rules", "outputs"])]
    part.insert(rng.randrange(len(part) + 1), rng.choice(part))
    return True


CHANGES = [
    change_step,
    change_step,
    change_step,
    lambda d, r: change_argument(d, r, "ref"),
    lambda d, r: change_argument(d, r, "literal"),
    change_rule,
    change_rule,
    change_captured,
    change_op,
    change_order,
    change_output,
    change_capture,
    change_rest,
    delete_entry,
    double_entry,
]


def change_bytes(text, rng):
    b = bytearray(text)
    for _ in range(rng.choice([1, 1, 1, 3])):
        k = rng.randrange(len(b))
        what = rng.randrange(4)
        if what == 0:
            b[k] ^= 1 << rng.randrange(8)
        elif what == 1:
            del b[k : k + rng.choice([1, 1, 10, 1000])]
        elif what == 2:
            b[k:k] = b[rng.randrange(len(b)) :][: rng.choice([1, 10, 100])]
        else:
            del b[k + 1 :]
    return bytes(b)


def mutate(text, rng):
    """A changed certificate."""
    while True:
        if rng.random() < 0.15:
            out = change_bytes(text, rng)
        else:
            doc = json.loads(text)
            try:
                if not all(
                    [rng.choice(CHANGES)(doc, rng) for _ in range(rng.choice([1, 1, 1, 2]))]
                ):
                    continue
            except (
                IndexError,
                KeyError,
                ValueError,
            ):  # the first change left nothing for the second
                continue
            out = json.dumps(doc).encode()
        try:
            if json.loads(out) == json.loads(text):
                continue
        except ValueError:
            pass
        return out
