"""The switch's delay line: which frame leaves when, and to whom."""

from __future__ import annotations

import json
import math
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_operator.local.network import change_delays, write_switch_config
from storm_operator.local.spec import MAXIMUM_MACHINES, ClusterLayout, LocalClusterError, LocalClusterSpec, lay_out
from storm_operator.local.switch import (
    VIRTIO_HEADER,
    Control,
    DelayLine,
    SwitchConfig,
    SwitchPort,
    even_delays,
    mac_address,
    read_config,
    write_config,
)


def frame(target: int, payload: bytes = b"") -> bytes:
    destination = bytes.fromhex(mac_address(target).replace(":", ""))
    return bytes(VIRTIO_HEADER) + destination + bytes(8) + payload


def broadcast() -> bytes:
    return bytes(VIRTIO_HEADER) + b"\xff" * 6 + bytes(8)


def test_a_frame_leaves_after_its_pairs_delay_and_not_before() -> None:
    line = DelayLine(3, {(1, 2): 20.0})
    line.accept(5.0, 1, frame(2))
    assert line.take_due(5.0199) == []
    assert [port for port, _ in line.take_due(5.0201)] == [2]
    assert line.next_due() is None


def test_delay_is_of_one_direction() -> None:
    line = DelayLine(3, {(1, 2): 20.0})
    line.accept(5.0, 2, frame(1))
    assert [port for port, _ in line.take_due(5.0)] == [1]


def test_frames_of_one_pair_keep_their_order() -> None:
    line = DelayLine(3, {(1, 2): 1.0})
    for number in range(10):
        line.accept(5.0, 1, frame(2, bytes([number])))
    assert [sent[-1] for _, sent in line.take_due(6.0)] == list(range(10))


def test_a_broadcast_reaches_everybody_else_each_with_its_own_delay() -> None:
    line = DelayLine(4, {(1, 2): 20.0})
    line.accept(5.0, 1, broadcast())
    assert sorted(port for port, _ in line.take_due(5.0)) == [0, 3]
    assert [port for port, _ in line.take_due(5.03)] == [2]


def test_frames_to_unknown_ports_or_back_to_their_sender_are_dropped() -> None:
    line = DelayLine(3, {})
    line.accept(5.0, 1, frame(7))
    line.accept(5.0, 1, frame(1))
    assert line.next_due() is None


def test_new_delays_hold_for_frames_that_arrive_later() -> None:
    line = DelayLine(3, {(1, 2): 20.0})
    line.set_delays({})
    line.accept(5.0, 1, frame(2))
    assert [port for port, _ in line.take_due(5.0)] == [2]


def test_even_delays_leave_the_host_alone() -> None:
    delays = even_delays(3, 2.0)
    assert delays == {(1, 2): 2.0, (2, 1): 2.0}


@pytest.mark.parametrize("delay", [math.nan, math.inf, -1.0])
def test_what_is_no_delay_changes_nothing(delay: float) -> None:
    """A frame that is never due keeps all behind it waiting."""
    line = DelayLine(3, {(1, 2): 20.0})
    with pytest.raises(ValueError, match="0 or more"):
        line.set_delays({(1, 2): delay})
    line.accept(5.0, 1, frame(2))
    assert [port for port, _ in line.take_due(5.0201)] == [2]


@pytest.fixture
def many() -> Iterator[ClusterLayout]:
    """As many machines as there can be, and a switch that answers once."""
    with tempfile.TemporaryDirectory(prefix="so-") as folder:  # short: a socket's path has few bytes
        layout = lay_out(LocalClusterSpec(machines=MAXIMUM_MACHINES), Path(folder), True, 6627, 2181)
        write_switch_config(layout, {})
        yield layout


def answer_once(control: Control) -> None:
    thread = threading.Thread(target=control.answer, daemon=True)
    thread.start()


def test_the_delays_of_as_many_machines_as_there_can_be_are_taken_and_kept(many: ClusterLayout) -> None:
    line = DelayLine(MAXIMUM_MACHINES + 1, {})
    control = Control(many.switch_socket, line)
    answer_once(control)
    delays = even_delays(MAXIMUM_MACHINES + 1, 2.0)
    change_delays(many, delays)
    assert line.delays_anything
    assert read_config(many.switch_config).delays_ms == delays
    control.socket.close()


def test_delays_that_the_switch_refuses_are_not_those_of_the_next_one_either(many: ClusterLayout) -> None:
    control = Control(many.switch_socket, DelayLine(MAXIMUM_MACHINES + 1, {}))
    answer_once(control)
    with pytest.raises(LocalClusterError, match="a delay must be a number of 0 or more"):
        change_delays(many, {(1, 2): -1.0})
    assert read_config(many.switch_config).delays_ms == {}
    assert sorted(path.name for path in many.root.iterdir()) == ["switch.json", "switch.sock"]
    control.socket.close()


def test_whoever_asks_and_waits_no_longer_does_not_end_the_switch(many: ClusterLayout) -> None:
    line = DelayLine(MAXIMUM_MACHINES + 1, {})
    control = Control(many.switch_socket, line)
    write_switch_config(many, {(1, 2): 3.0})
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.bind(str(many.root / "client"))
        client.sendto(json.dumps({"config": str(many.switch_config)}).encode(), str(many.switch_socket))
    (many.root / "client").unlink()
    control.answer()
    assert line.delays_anything
    control.socket.close()


def test_the_configuration_survives_its_file(tmp_path: Path) -> None:
    config = SwitchConfig(
        (SwitchPort("so-x", None), SwitchPort("eth0", "storm.x.machine-1")), tmp_path / "s", {(0, 1): 1.5}
    )
    write_config(tmp_path / "config", config)
    assert read_config(tmp_path / "config") == config
