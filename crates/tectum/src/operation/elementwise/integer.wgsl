// Operations on integers of one type, `int`: i32 or u32. All are total and wrap modulo 2^32: what is undefined on a device (a divisor of 0, the
// minimum divided by -1, a shift by more than the width) is defined here. Exact.

fn is_negative(a: int) -> bool {
    return a < int(0);
}

fn is_minus_one(a: int) -> bool {
    return is_negative(a) && a == ~int(0);
}

// b, but 1 where the quotient is not computed by a division.
fn divisor(b: int) -> int {
    return select(b, int(1), b == int(0) || is_minus_one(b));
}

// Truncated; 0 for b = 0.
fn quotient(a: int, b: int) -> int {
    return select(select(a / divisor(b), int(0) - a, is_minus_one(b)), int(0), b == int(0));
}

// Truncated, with the sign of a; 0 for b = 0.
fn remainder(a: int, b: int) -> int {
    return a % divisor(b);
}

// Floored, with the sign of b; 0 for b = 0.
fn modulo(a: int, b: int) -> int {
    let rest = remainder(a, b);
    return select(rest, rest + b, rest != int(0) && is_negative(rest) != is_negative(b));
}

fn shift_left(a: int, b: int) -> int {
    return select(int(0), a << (u32(b) & 31u), u32(b) < 32u);
}

fn shift_right(a: int, b: int) -> int {
    return select(select(int(0), ~int(0), is_negative(a)), a >> (u32(b) & 31u), u32(b) < 32u);
}

// By squares. A negative power of 1 and -1 is one of them, of others 0.
fn power(a: int, b: int) -> int {
    if is_negative(b) {
        let of_minus_one = select(a, int(1), (b & int(1)) == int(0));
        return select(select(int(0), of_minus_one, is_minus_one(a)), int(1), a == int(1));
    }
    var square = a;
    var left = u32(b);
    var y = int(1);
    while left != 0u {
        if (left & 1u) != 0u {
            y *= square;
        }
        square *= square;
        left >>= 1u;
    }
    return y;
}

fn absolute(a: int) -> int {
    return select(a, int(0) - a, is_negative(a));
}

fn sign_of(a: int) -> int {
    return select(select(int(0), int(1), a != int(0)), ~int(0), is_negative(a));
}
