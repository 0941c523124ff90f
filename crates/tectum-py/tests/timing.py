"""Measurements on machines whose processors others use too."""


def shortest(measure, is_short):
    """The first of five measurements that is short, or the last: other processes make single ones long."""
    for _ in range(5):
        measured = measure()
        if is_short(measured):
            break
    return measured
