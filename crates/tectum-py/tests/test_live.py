"""Runs that are shown while they happen."""

import json
import socket
import threading
import urllib.request

import pytest

import tectum as tt


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_the_numbers_of_a_run_are_read_while_it_happens():
    port, ticks, is_over = free_port(), [], threading.Event()

    def watch():
        while not is_over.wait(0.02):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/summary") as answer:
                    ticks.append(json.load(answer).get("ticks"))
            except OSError:
                pass  # not yet, or not any more

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        run = tt.run("cart_pole", brain="lqr", clock="real", seconds=2, live=str(port))
    finally:
        is_over.set()
        watching.join()
    assert len(run) == 100
    during = [count for count in ticks if count]
    assert during and during == sorted(during) and min(during) < 100


def test_a_shown_run_has_the_numbers_of_one_that_is_not():
    shown, alone = [
        tt.run("cart_pole", brain="lqr", clock="sim", seconds=2, live=live)
        for live in [f"127.0.0.1:{free_port()}", None]
    ]
    assert (shown.observations == alone.observations).all()
    assert (shown.actions == alone.actions).all()


def test_addresses_of_other_machines_and_what_is_none_are_refused():
    for address, reason in [
        ("0.0.0.0:0", "needs a token"),
        ("ws://127.0.0.1", "HOST:PORT is needed"),
    ]:
        with pytest.raises(ValueError, match=reason):
            tt.run("cart_pole", seconds=1, live=address)
