"""XLA's HLO text as a module of computations of instructions; nothing is given a meaning here.

An instruction is one logical line: `NAME = TYPE opcode(OPERANDS), KEY=VALUE, ...`, which goes on
over newlines while a bracket is open. Values of attributes stay text, because each has a grammar of
its own (`window={size=8x1 pad=7_0x0_0}`, `replica_groups=[2,4]<=[8]T(1,0)`)."""

import re
from dataclasses import dataclass, field

from ..errors import CaptureError

MAX_BYTES = 1 << 28
OPEN, CLOSE = "([{", ")]}"
NAME = re.compile(r"%?([A-Za-z_][\w.\-]*)")
ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\]")
LAYOUT = re.compile(r"\{([^{}]*)\}")
HEADER = re.compile(r"(ENTRY\s+)?%?([\w.\-]+)\s*(\(.*\)\s*->.*)?\{$", re.S)
INSTRUCTION = re.compile(r"(ROOT\s+)?%?([\w.\-]+)\s*=\s*(.*)$", re.S)
OPCODE = re.compile(r"\s*([a-z][a-z0-9\-]*)\s*\(")
TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


@dataclass(frozen=True)
class Shape:
    """An array: element type, sizes, and its dimensions from minor to major (None: row-major)."""

    dtype: str
    sizes: tuple
    layout: tuple | None = None


@dataclass
class Instruction:
    name: str
    shape: object  # a Shape, or a tuple of what an instruction's shape may be
    opcode: str
    operands: list  # names
    literal: str  # what stands between the brackets
    attributes: dict
    line: int
    metadata: dict = field(default_factory=dict)


@dataclass
class Computation:
    name: str
    line: int
    instructions: list = field(default_factory=list)
    root: Instruction | None = None
    parameters: list = field(default_factory=list)
    declared: dict = field(default_factory=dict)  # the shape of each instruction


@dataclass
class Module:
    path: str
    name: str
    attributes: dict
    computations: dict
    entry: Computation
    tables: dict


class HloError(CaptureError):
    """One line: where in the file, at which instruction, and why."""

    def __init__(self, path, line, name, reason):
        at = "%s:%d: " % (path, line)
        reason = " ".join(reason.split()) or "malformed"
        super().__init__(at + ("%s: %s" % (name, reason) if name else reason))


def closing(text, at):
    """The index behind the bracket that closes the one at `at`; strings are skipped. -1: none."""
    depth, i = 0, at
    while i < len(text):
        c = text[i]
        if c == '"':
            i = string_end(text, i)
            if i < 0:
                return -1
            continue
        depth += (c in OPEN) - (c in CLOSE)
        i += 1
        if depth == 0:
            return i
    return -1


def string_end(text, at):
    """The index behind the string that begins at `at`; -1 where it does not end."""
    i = at + 1
    while i < len(text):
        if text[i] == "\\":
            i += 2
        elif text[i] == '"':
            return i + 1
        else:
            i += 1
    return -1


def split(text, separator=","):
    """The parts between separators outside of brackets and strings, stripped; no empty last one."""
    parts, begin, depth, i = [], 0, 0, 0
    while i < len(text):
        c = text[i]
        if c == '"':
            end = string_end(text, i)
            i = end if end > 0 else len(text)
            continue
        depth += (c in OPEN) - (c in CLOSE)
        if c == separator and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
        i += 1
    if text[begin:].strip():
        parts.append(text[begin:].strip())
    return parts


def without_comments(text):
    """Comments as blanks, newlines kept; what looks like one inside a string is none."""
    token = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*', re.S)

    def blank(m):
        return m[0] if m[0][0] == '"' else re.sub(r"[^\n]", " ", m[0])

    return token.sub(blank, text)


def logical_lines(text):
    """(line number, text) of each line, joined with the next ones while a bracket is open. The
    brace that opens a computation's body is left open: its instructions are lines too."""
    pending, start, depth = [], 0, 0
    for number, line in enumerate(text.split("\n"), 1):
        if not pending:
            start = number
            if not line.strip():
                continue
        bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
        depth += sum(bare.count(c) for c in OPEN) - sum(bare.count(c) for c in CLOSE)
        pending.append(line)
        opens = depth == 1 and line.rstrip().endswith("{") and " = " not in pending[0]
        if depth <= 0 or opens:
            yield start, "\n".join(pending).strip()
            pending, depth = [], 0
    if pending:
        yield start, "\n".join(pending).strip()


def parse_shape(text, at=0):
    """(shape, index behind it). Raises ValueError with the reason."""
    while at < len(text) and text[at].isspace():
        at += 1
    if text.startswith("(", at):
        end = closing(text, at)
        if end < 0:
            raise ValueError("a tuple's type does not end")
        return tuple(parse_shape(part)[0] for part in split(text[at + 1 : end - 1])), end
    m = ARRAY.match(text, at)
    if m is None:
        raise ValueError("no type where one should be")
    sizes = []
    for size in filter(None, m[2].replace(" ", "").split(",")):
        if size.startswith("<="):
            raise ValueError("sizes that are bounds only are not read")
        if not size.isdigit() or int(size) >= 1 << 40:
            raise ValueError("%r is no size" % size[:20])
        sizes.append(int(size))
    end, layout = m.end(), None
    m2 = LAYOUT.match(text, end)
    if m2 is not None:
        end = m2.end()
        order = m2[1].split(":")[0].replace(" ", "")
        if order:
            layout = tuple(int(d) for d in order.split(",") if d.isdigit())
            if sorted(layout) != list(range(len(sizes))):
                raise ValueError("its layout is no order of its dimensions")
    return Shape(m[1], tuple(sizes), layout), end


def parse_attributes(text):
    """KEY=VALUE, ... as a dictionary of texts."""
    out = {}
    for part in split(text):
        m = re.match(r"([A-Za-z_][\w\-]*)\s*=", part)
        if m is None:
            raise ValueError("%r is no attribute" % part[:40])
        out[m[1]] = part[m.end() :].strip()
    return out


def unquote(text):
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[:1] == '"' else text


def parse_words(text):
    """{a="x" b=3} as a dictionary of texts; commas and blanks separate."""
    pair = re.compile(r'([A-Za-z_]\w*)=("(?:\\.|[^"\\])*"|\{[^{}]*\}|[^\s,{}]+)')
    return {m[1]: unquote(m[2]) for m in pair.finditer(text)}


def parse_instruction(m, line):
    body = m[3]
    shape, at = parse_shape(body)
    op = OPCODE.match(body, at)
    if op is None:
        raise ValueError("no opcode where one should be")
    end = closing(body, op.end() - 1)
    if end < 0:
        raise ValueError("the operands do not end")
    inside, rest = body[op.end() : end - 1].strip(), body[end:].strip()
    if rest and not rest.startswith(","):
        raise ValueError("%r behind the operands" % rest[:20])
    attributes = parse_attributes(rest[1:])
    operands = []
    if op[1] not in ("constant", "parameter", "iota"):
        for part in split(inside):
            name = NAME.fullmatch((part.split() or [""])[-1])
            if name is None:
                raise ValueError("%r is no operand" % part[:40])
            operands.append(name[1])
    metadata = parse_words(attributes.pop("metadata", ""))
    return Instruction(m[2], shape, op[1], operands, inside, attributes, line, metadata)


def parse_parameters(computation, fail):
    """Parameters by number, which must be 0, 1, ... without a gap."""
    numbers = {}
    for i in computation.instructions:
        if i.opcode != "parameter":
            continue
        if not i.literal.isdigit() or int(i.literal) in numbers:
            fail(i.line, i.name, "its number %r is none, or is there twice" % i.literal[:20])
        numbers[int(i.literal)] = i
    if sorted(numbers) != list(range(len(numbers))):
        fail(computation.line, computation.name, "its parameters are not numbered 0, 1, ...")
    return [numbers[k] for k in range(len(numbers))]


class Reader:
    def __init__(self, path):
        self.path, self.module, self.current = path, None, None
        self.entry, self.table, self.names = None, None, set()

    def fail(self, line, name, reason):
        raise HloError(self.path, line, name, reason)

    def header(self, line, text):
        m = re.match(r"HloModule\s+([\w.\-]+)\s*,?", text)
        if m is None:
            self.fail(line, "", "no HloModule where one should be; is this HLO text?")
        self.module = Module(self.path, m[1], parse_attributes(text[m.end() :]), {}, None, {})

    def table_line(self, line, text):
        m = re.match(r"(\d+)\s+(.*)$", text)
        if m is None:
            self.fail(line, "", "no numbered line in the table %s" % self.table)
        value = unquote(m[2]) if m[2][:1] == '"' else parse_words(m[2])
        self.module.tables[self.table][m[1]] = value

    def open(self, line, m):
        if m[2] in self.module.computations:
            self.fail(line, m[2], "a second computation of this name")
        self.current, self.names = Computation(m[2], line), set()
        self.module.computations[m[2]] = self.current
        if m[1]:
            if self.entry is not None:
                self.fail(line, m[2], "a second ENTRY")
            self.entry = self.current

    def close(self, line):
        c = self.current
        if not c.instructions:
            self.fail(line, c.name, "a computation without instructions")
        c.root = c.root or c.instructions[-1]
        c.parameters = parse_parameters(c, self.fail)
        c.declared = {i.name: i.shape for i in c.instructions}
        self.current = None

    def instruction(self, line, text):
        m = INSTRUCTION.match(text)
        if m is None:
            self.fail(line, "", "%r is no instruction" % text[:40])
        try:
            i = parse_instruction(m, line)
        except ValueError as e:
            self.fail(line, m[2], str(e))
        if i.name in self.names:
            self.fail(line, i.name, "a second instruction of this name")
        for o in i.operands:
            if o not in self.names:
                self.fail(line, i.name, "operand %s is not computed before" % o)
        self.names.add(i.name)
        self.current.instructions.append(i)
        if m[1]:
            if self.current.root is not None:
                self.fail(line, i.name, "a second ROOT")
            self.current.root = i

    def read(self, line, text):
        if self.module is None:
            return self.header(line, text)
        if self.current is not None:
            return self.close(line) if text == "}" else self.instruction(line, text)
        if text in TABLES:
            self.table = text
            self.module.tables[text] = {}
            return None
        m = HEADER.match(text)
        if m is not None:
            return self.open(line, m)
        if self.table is None:
            self.fail(line, "", "%r is no computation" % text[:40])
        return self.table_line(line, text)

    def finish(self, line):
        if self.module is None:
            self.fail(1, "", "the file is empty")
        if self.current is not None:
            self.fail(line, self.current.name, "the file ends inside this computation")
        if self.entry is None:
            self.fail(line, "", "there is no ENTRY")
        self.module.entry = self.entry
        return self.module


def parse(text, path):
    """A Module. Raises HloError."""
    reader, line = Reader(path), 1
    for line, logical in logical_lines(without_comments(text)):
        try:
            reader.read(line, logical)
        except ValueError as e:
            reader.fail(line, "", str(e))
        except (IndexError, KeyError, TypeError):
            reader.fail(line, "", "malformed")
        except RecursionError:
            reader.fail(line, "", "types are nested too deeply")
    return reader.finish(line)


def read_file(path):
    try:
        with open(path, "rb") as f:
            data = f.read(MAX_BYTES + 1)
    except OSError as e:
        raise CaptureError("%s: %s" % (path, e.strerror)) from None
    if len(data) > MAX_BYTES:
        raise CaptureError("%s: more than %d bytes" % (path, MAX_BYTES))
    try:
        return parse(data.decode("utf-8"), path)
    except UnicodeDecodeError:
        raise CaptureError("%s: not UTF-8" % path) from None


def source_of(module, metadata):
    """file:line of an instruction, from its own words or the module's table of stack frames."""
    if metadata.get("source_file"):
        return "%s:%s" % (metadata["source_file"], metadata.get("source_line", "0"))
    t = module.tables
    frame = t.get("StackFrames", {}).get(metadata.get("stack_frame_id"))
    place = t.get("FileLocations", {}).get((frame or {}).get("file_location_id"))
    file = t.get("FileNames", {}).get((place or {}).get("file_name_id"))
    return "%s:%s" % (file, place.get("line", "0")) if file else ""


def scope_of(metadata):
    """ "jit(f)/block/mul" is `mul` in the scope block."""
    parts = metadata.get("op_name", "").split("/")[:-1]
    return ".".join(p for p in parts if not re.fullmatch(r"(jit|pjit)\(.*\)|main", p))
