"""Free memory within the limits of control groups, of either version, at any depth: on made-up systems."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from gramian.linalg import memory

GB = 2**30
ALL = 100 * GB  # of the machine
NO_LIMIT = 2**63 - 4096  # as version 1 says it


def system(root, cgroup, mountinfo, groups):
    """A made-up system: what /proc tells, and the files of its control groups."""
    files = {"proc/self/cgroup": cgroup, "proc/self/mountinfo": mountinfo}
    files["proc/meminfo"] = f"MemTotal: 1 kB\nMemAvailable: {ALL // 1024} kB\n"
    for folder, own in groups.items():
        files |= {f"{folder}/{name}": text for name, text in own.items()}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def v2(most, used=0, cached=0):
    stat = f"anon 5\ninactive_file {cached}\nactive_file 7\n"
    return {"memory.max": f"{most}\n", "memory.current": f"{used}\n", "memory.stat": stat}


def v1(most, used=0, cached=0):
    stat = f"inactive_file 1\ntotal_inactive_file {cached}\n"
    return {"memory.limit_in_bytes": f"{most}\n", "memory.usage_in_bytes": f"{used}\n", "memory.stat": stat}


def mount_2(part="/", point="/sys/fs/cgroup"):
    return f"30 24 0:26 {part} {point} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


def mount_1(part="/"):
    return (
        "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        f"32 24 0:28 {part} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    )


TOP_2, TOP_1 = "sys/fs/cgroup", "sys/fs/cgroup/memory"
CASES = {
    "v2, a container": ("0::/\n", mount_2(), {TOP_2: v2(8 * GB, 3 * GB)}, 5 * GB),
    "v2, no limit": ("0::/\n", mount_2(), {TOP_2: v2("max", 3 * GB)}, ALL),
    "v2, no files": ("0::/\n", mount_2(), {}, ALL),
    "v2, the limit of a parent": (
        "0::/a.slice/b.scope\n",
        mount_2(),
        {f"{TOP_2}/a.slice/b.scope": v2("max", GB), f"{TOP_2}/a.slice": v2(6 * GB, 4 * GB)},
        2 * GB,
    ),
    "v2, the one that leaves least": (
        "0::/a/b\n",
        mount_2(),
        {f"{TOP_2}/a/b": v2(3 * GB, GB), f"{TOP_2}/a": v2(9 * GB, 8 * GB), f"{TOP_2}/other": v2(1)},
        GB,
    ),
    "v2, cache is free": ("0::/\n", mount_2(), {TOP_2: v2(8 * GB, 7 * GB, 4 * GB)}, 5 * GB),
    "v2, the name outside": ("0::/docker/1\n", mount_2("/docker/1"), {TOP_2: v2(4 * GB, GB)}, 3 * GB),
    "v2, outside of what is seen": ("0::/../..\n", mount_2(), {TOP_2: v2(4 * GB, GB)}, 3 * GB),
    "v2, more than allowed": ("0::/\n", mount_2(), {TOP_2: v2(2 * GB, 3 * GB)}, 0),
    "v2, blanks in names": (
        "0::/a b\n",
        mount_2(point="/my\\040groups"),
        {"my groups/a b": v2(3 * GB)},
        3 * GB,
    ),
    "v1, nested": (
        "3:cpu:/x\n4:memory:/jobs/7\n0::/\n",
        mount_1(),
        {f"{TOP_1}/jobs/7": v1(NO_LIMIT, GB), f"{TOP_1}/jobs": v1(7 * GB, 5 * GB, GB), TOP_1: v1(NO_LIMIT)},
        3 * GB,
    ),
    "v1, a container": (
        "4:hugetlb,memory:/docker/9\n",
        mount_1("/docker/9"),
        {TOP_1: v1(7 * GB, 5 * GB)},
        2 * GB,
    ),
    "both versions": (
        "4:memory:/\n0::/\n",
        mount_1() + mount_2(point="/sys/fs/cgroup/unified"),
        {TOP_1: v1(7 * GB, 6 * GB), "sys/fs/cgroup/unified": {"cgroup.procs": "1"}},
        GB,
    ),
    "lines of no known form": ("nonsense\n:\n", "nonsense\n- - -\n\n", {}, ALL),
    "use unknown": (
        "0::/\n",
        mount_2(),
        {TOP_2: {"memory.max": str(8 * GB), "memory.current": "what?"}},
        8 * GB,
    ),
    "cache unknown": (
        "0::/\n",
        mount_2(),
        {TOP_2: {"memory.max": str(8 * GB), "memory.current": str(GB), "memory.stat": "inactive_file x"}},
        7 * GB,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_free_memory_within_the_limits(case, tmp_path):
    cgroup, mountinfo, groups, free = CASES[case]
    assert memory.free_bytes(system(tmp_path, cgroup, mountinfo, groups)) == free


def test_a_file_that_cannot_be_read_is_no_limit(tmp_path):
    root = system(tmp_path, "0::/\n", mount_2(), {})
    (root / TOP_2 / "memory.max").mkdir(parents=True)  # nobody can read that as a file, root neither
    assert memory.free_bytes(root) == ALL


def test_what_is_left_is_asked_each_time(tmp_path):
    root = system(tmp_path, "0::/\n", mount_2(), {TOP_2: v2(8 * GB, 3 * GB)})
    assert memory.free_bytes(root) == 5 * GB
    (root / TOP_2 / "memory.current").write_text(str(6 * GB))
    assert memory.free_bytes(root) == 2 * GB


def test_systems_without_proc_ask_psutil(tmp_path, monkeypatch):
    told = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=3 * GB))
    monkeypatch.setitem(sys.modules, "psutil", told)
    assert memory.free_bytes(tmp_path) == 3 * GB
    monkeypatch.setitem(sys.modules, "psutil", None)  # not installed
    assert memory.free_bytes(tmp_path) == memory.UNKNOWN
