"""What DTensors say of themselves: the mesh, and where leaves lie, as metadata of a capture of
several ranks (docs/placements.md)."""

import torch


def word(p):
    """A placement along one axis, as metadata.placements has it; None: there is no word for it."""
    if p.is_replicate():
        return "R"
    if p.is_partial():
        return "P(%s)" % p.reduce_op if p.reduce_op in ("sum", "avg", "max", "min") else None
    blocks = getattr(p, "split_factor", 1)  # columns that another axis has cut before
    return "S(%d)" % p.dim if blocks == 1 else "S(%d:%d)" % (p.dim, blocks)


def root_of(mesh):
    return mesh._get_root_mesh() if hasattr(mesh, "_get_root_mesh") else mesh


def axes_of(mesh):
    """Names and sizes of the axes of a mesh that has all ranks in their order, or None."""
    ranks = mesh.mesh.flatten().tolist()
    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    if ranks != list(range(world)):
        return None
    names = mesh.mesh_dim_names or ["axis%d" % k for k in range(mesh.mesh.dim())]
    return dict(zip(names, mesh.mesh.shape))


class Said:
    """One rank's. `mesh` is None where no DTensor was seen, {} where they have several."""

    def __init__(self):
        self.mesh, self.leaves = None, {}

    def leaf(self, name, t):
        mesh = getattr(t, "device_mesh", None)
        if mesh is None:
            return
        root = root_of(mesh)
        axes = axes_of(root) or {}
        if self.mesh is not None and self.mesh != axes:
            axes = {}
        self.mesh = axes
        names = mesh.mesh_dim_names or list(axes_of(mesh) or {})
        words = [word(p) for p in t.placements]
        if len(names) == len(words) and None not in words:
            self.leaves[name] = dict(zip(names, words))

    def metadata(self):
        """{"mesh", "placements"}, as far as they are said."""
        if not self.mesh:
            return {}
        found = {
            name: [at.get(axis, "R") for axis in self.mesh]
            for name, at in self.leaves.items()
            if all(axis in self.mesh for axis in at)
        }
        return {"mesh": self.mesh, "placements": found}


def metadata(recordings, nodes):
    """What all ranks say alike, of leaves that are there."""
    first = recordings[0]["said"]
    placed = {n["name"].split(".", 1)[1] for n in nodes if n.get("name", "").startswith("rank")}
    same = len(recordings) > 1 and all(
        e["said"].get("mesh") == first.get("mesh") for e in recordings
    )
    if not same:
        return {}
    found = dict(first.get("placements", {}), **recordings[0]["placements"])
    for each in recordings:
        theirs = dict(each["said"].get("placements", {}), **each["placements"])
        found = {n: p for n, p in found.items() if theirs.get(n) == p and n in placed}
    out = {"mesh": first["mesh"]} if first else {}
    return dict(out, **({"placements": found} if found else {}))
