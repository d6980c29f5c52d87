"""StarPU's performance models, from a small folder whose pooled times are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.lab.platforms.imported import ImportFailed
from services.lab.platforms.starpu import import_starpu

TITLE = "# hash size flops mean (us) dev (us) sum sum2 n"


def row(size: int, mean: float, deviation: float, count: int) -> str:
    square = (mean**2 + deviation**2) * count
    return f"0badcafe {size} 0 {mean} {deviation} {mean * count} {square} {count}"


def model(
    *devices: tuple[int, int, list[str]], cores: int = 1, more: tuple[list[str], ...] = ()
) -> str:
    """A performance model; each device has a type, a number and its rows. `more` are the rows of
    further implementations."""
    lines = ["# Performance Model Version", "45", "# COMBs", "# number of combinations",
             str(len(devices))]  # fmt: skip
    for number, (kind, device, rows) in enumerate(devices):
        lines += [
            *(f"# COMB_{number}", "# number of types devices", "1", "# DEV_0"),
            *("# device type (CPU - 0, CUDA - 1, OPENCL - 2, MIC - 3)", str(kind)),
            *("# DEV_0", "# device id ", str(device), "# DEV_0", "# number of cores ", str(cores)),
            *("##########", "# number of implementations", str(1 + len(more))),
        ]
        for implementation, entries in enumerate((rows, *more)):
            lines += [
                *("#####", f"# Model for dev{device}_impl{implementation} (Comb{number})"),
                *("# number of entries", str(len(entries))),
                *("# sumlnx sumlnx2 sumlny sumlnxlny alpha beta n minx maxx", "0 0 0 0 nan nan 0"),
                *("# a b c", "nan nan nan", "# not multiple-regression-base", "0", TITLE),
                *(*entries, ""),
            ]
    return "\n".join(lines)


@pytest.fixture
def sampling(tmp_path: Path) -> Path:
    (tmp_path / "codelets").mkdir()
    (tmp_path / "bus").mkdir()
    gpus = [
        # size 1000: means 100 and 200 with counts 30 and 10, so 125 together
        (1, 0, [row(1000, 100, 0, 30), row(2000, 300, 30, 10)]),
        (1, 1, [row(1000, 200, 0, 10)]),
    ]
    cpu = (0, 0, [row(2000, 9000, 900, 5), row(1000, 2000, 100, 5)])
    (tmp_path / "codelets/gemm.node7").write_text(model(*gpus, cpu))
    (tmp_path / "bus/node7.config").write_text(
        "# Current configuration\n12 # Number of CPUs\n2 # Number of CUDA devices\n"
        "2 # Number of OpenCL devices\n"
    )
    (tmp_path / "bus/node7.bandwidth").write_text(
        "# to 0 to 1 to 2\n0.0 10000.0 12000.0 7000.0\n9000.0 0.0 1.0 1.0\n"
    )
    return tmp_path


def xml(*models: str) -> str:
    return "".join(
        f'<host id="CUDA{number}" speed="1f">\n<prop id="model" value="{name}"/>\n'
        f'<prop id="memsize" value="12000000000"/>\n</host>\n'
        for number, name in enumerate(models)
    )


def test_equal_devices_are_pooled_by_their_counts(sampling: Path) -> None:
    (sampling / "bus/node7.platform.xml").write_text(xml("Tesla K40m", "Tesla K40m"))
    gpu, cpu = import_starpu(sampling, "mine").curves
    assert (gpu.kind, gpu.type, gpu.sizes, gpu.counts) == ("gemm", "k40m", (1000, 2000), (40, 10))
    assert gpu.seconds == pytest.approx((125e-6, 300e-6), rel=1e-9)
    # The variance of 30 times 100 and 10 times 200 is (30 * 25^2 + 10 * 75^2) / 40 = 1875.
    assert gpu.deviations == pytest.approx((1875**0.5 / 125, 0.1), rel=1e-6)
    assert cpu.type == "cpu"
    assert cpu.seconds == pytest.approx((2e-3, 9e-3), rel=1e-9)


def test_the_machine_comes_from_the_bus_files(sampling: Path) -> None:
    (sampling / "bus/node7.platform.xml").write_text(xml("Tesla K40m", "Tesla K40m"))
    imported = import_starpu(sampling, "mine")
    gpu, cpu = imported.fields["cluster"]["devices"]
    assert gpu == {
        "type": "k40m", "count": 2, "accelerator": True, "memory_mb": 12_000,
        "bandwidth_mb_s": 11_000, "watts": 235,
    }  # fmt: skip
    assert cpu == {"type": "cpu", "count": 12}
    assert imported.fields["physics"] == {"noise": "measured", "memory_mb_per_size": 1e-6}
    assert "watts 235 of k40m: data sheet of NVIDIA Tesla K40m" in imported.assumed
    assert "dollars_per_s of k40m, cpu: the arena's default" in imported.assumed
    assert not any("memory_mb" in each for each in imported.assumed)


def test_devices_of_different_models_are_kept_apart(sampling: Path) -> None:
    (sampling / "bus/node7.platform.xml").write_text(xml("Tesla K40m", "NVIDIA A100"))
    curves = import_starpu(sampling, "mine").curves
    assert [curve.type for curve in curves] == ["k40m", "a100", "cpu"]


def test_without_models_devices_with_other_times_are_kept_apart(sampling: Path) -> None:
    curves = import_starpu(sampling, "mine").curves  # one takes twice as long as the other
    assert [curve.type for curve in curves] == ["cuda", "cuda-1", "cpu"]
    alike = model((1, 0, [row(1000, 100, 0, 3)]), (1, 1, [row(1000, 110, 0, 3)]))
    (sampling / "codelets/gemm.node7").write_text(alike)
    assert [curve.type for curve in import_starpu(sampling, "mine").curves] == ["cuda"]


def test_what_is_left_out_is_said(sampling: Path) -> None:
    (sampling / "codelets/gemm_atlas.node7").write_text("gemm.node7")
    (sampling / "codelets/null.node7").write_text(model())
    (sampling / "codelets/many.node7").write_text(
        model((0, 0, [row(1000, 1, 0, 1)]), cores=4)
    )  # fmt: skip
    (sampling / "codelets/other.node7").write_text(model((2, 0, [row(1000, 1, 0, 1)])))
    left_out = " | ".join(import_starpu(sampling, "mine").left_out)
    for part in ("1 links to other models: gemm_atlas", "models without times: many, null",
                 "many.node7: times of several devices or cores together",
                 "times on OpenCL devices", "latency of the bus"):  # fmt: skip
        assert part in left_out


def test_a_deviation_that_contradicts_the_sums_is_mentioned(sampling: Path) -> None:
    (sampling / "codelets/odd.node7").write_text(
        model((0, 0, ["0badcafe 1000 0 100 100 1000 100000 10"]))
    )
    imported = import_starpu(sampling, "mine")
    assert any(each.startswith("sums of 1 times whose deviation") for each in imported.left_out)


def test_of_several_implementations_the_fastest_of_each_size_is_taken(sampling: Path) -> None:
    rows, others = [row(1, 5, 0, 1), row(2, 8, 0, 1)], [row(1, 4, 0, 1), row(2, 9, 0, 1)]
    (sampling / "codelets/gemm.node7").write_text(model((0, 0, rows), more=(others,)))
    (curve,) = import_starpu(sampling, "mine").curves
    assert curve.seconds == pytest.approx((4e-6, 8e-6))


def test_shapes_of_the_same_size_are_pooled(sampling: Path) -> None:
    rows = [row(1000, 4, 0, 1), row(1000, 8, 0, 3)]
    (sampling / "codelets/gemm.node7").write_text(model((0, 0, rows)))
    (curve,) = import_starpu(sampling, "mine").curves
    assert (curve.sizes, curve.seconds) == ((1000,), pytest.approx((7e-6,)))


def test_the_written_file_has_the_same_times(sampling: Path, tmp_path: Path) -> None:
    imported = import_starpu(sampling, "mine")
    assert imported.write(tmp_path / "mine.yaml").times == imported.curves


def test_of_several_hosts_one_has_to_be_chosen(sampling: Path) -> None:
    (sampling / "codelets/gemm.node8").write_text(model((0, 0, [row(1000, 7, 0, 1)])))
    with pytest.raises(ImportFailed, match="choose one with --host: node7, node8"):
        import_starpu(sampling, "mine")
    (curve,) = import_starpu(sampling, "mine", "node8").curves
    assert curve.seconds == pytest.approx((7e-6,))
    with pytest.raises(ImportFailed, match="no host node9; measured are node7, node8"):
        import_starpu(sampling, "mine", "node9")


def test_a_broken_model_gives_file_and_line(sampling: Path) -> None:
    text = (sampling / "codelets/gemm.node7").read_text().replace(" 2000 0 300", " 2000 0 slow")
    (sampling / "codelets/gemm.node7").write_text(text)
    with pytest.raises(ImportFailed, match=r"gemm.node7, line \d+: '0badcafe 2000 0 slow"):
        import_starpu(sampling, "mine")


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="give StarPU's `sampling` folder"):
        import_starpu(tmp_path, "mine")
