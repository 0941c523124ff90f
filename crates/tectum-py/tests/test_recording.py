import numpy as np
import pytest

import tectum as tt


@pytest.fixture
def run(tmp_path):
    return tt.run("pendulum", clock="sim", seconds=2, brain="lqr", folder=tmp_path)


def test_a_recording_has_every_period_of_the_run(run):
    for path in (run.folder, run.folder / "trace.mcap", str(run.folder)):
        recording = tt.Recording(path)
        assert len(recording) == len(run)
        assert recording.observation_names == [channel.name for channel in run.spec.observation]
        assert recording.action_names == [channel.name for channel in run.spec.action]
        np.testing.assert_array_equal(recording.observations, run.observations)
        np.testing.assert_array_equal(recording.actions, run.actions)
        np.testing.assert_array_equal(recording.rewards, run.rewards)
        np.testing.assert_array_equal(recording.ended, run.ended)
        np.testing.assert_allclose(recording.t, run.t, rtol=0, atol=1e-9)
        assert not recording.held.any() and not recording.fallback.any() and np.isnan(recording.latency).all()
    assert recording.measure_name is not None and np.isfinite(recording.measure).all()
    assert "periods" in repr(recording)


def test_a_recording_that_breaks_off_names_its_place(run, tmp_path):
    whole = (run.folder / "trace.mcap").read_bytes()
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(tt.DataError, match="broken.mcap: not an MCAP recording: the data at byte [0-9]+ is cut short"):
        tt.Recording(broken)
    with pytest.raises(FileNotFoundError):
        tt.Recording(tmp_path / "absent.mcap")


def test_a_recording_is_drawn(run):
    pytest.importorskip("matplotlib").use("agg")
    recording = tt.Recording(run.folder)
    figure = recording.plot()
    assert [panel.get_ylabel() for panel in figure.axes] == [*recording.observation_names, *recording.action_names]


def test_a_run_is_repeated_and_compared_period_by_period(run):
    again = tt.repeat(run.folder)
    assert again.same and again.periods == len(run) and again.found == run.receipt.trace
    assert again.receipt.device == again.device == "cpu"
    assert tt.repeat(run.folder, device=tt.Device("cpu", threads=1)).same
    receipt = run.folder / "receipt.json"
    receipt.write_text(receipt.read_text().replace(run.receipt.trace, "0" * len(run.receipt.trace)))
    assert not tt.repeat(run.folder).same


def test_what_cannot_be_repeated_is_refused(run, tmp_path):
    with pytest.raises(FileNotFoundError):
        tt.repeat(tmp_path / "absent")
    with pytest.raises(ValueError, match="expected auto"):
        tt.repeat(run.folder, device="gpu")
    with pytest.raises(ValueError, match="is chosen for the work"):
        tt.repeat(run.folder, device="auto")
    receipt = run.folder / "receipt.json"
    receipt.write_text(receipt.read_text().replace('"recovery_count": 0', '"recovery_count": 1').replace('"recovery_count":0', '"recovery_count":1'))
    with pytest.raises(ValueError, match="faults were injected or happened"):
        tt.repeat(run.folder)
