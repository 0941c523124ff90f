"""Measurements on machines that others use too."""


def first_good(measure, is_good):
    """The first of five measurements that is good, or the last: other processes and threads make single ones bad, a fault makes all of them."""
    for _ in range(5):
        measured = measure()
        if is_good(measured):
            break
    return measured
