//! A total order on floats as integer keys: the native twin of `kernel/wgsl/order.wgsl`.

/// A key that grows with `x`: both zeros have one key, and every NaN has the greatest.
#[inline(always)]
pub fn order_key(x: f32) -> u32 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        u32::MAX
    } else if magnitude == 0 {
        0x8000_0000
    } else if bits & 0x8000_0000 != 0 {
        !bits
    } else {
        bits | 0x8000_0000
    }
}

#[cfg(test)]
mod tests {
    use super::order_key;

    #[test]
    fn keys_grow_with_values_and_nan_is_greatest() {
        let ascending = [
            f32::NEG_INFINITY,
            f32::MIN,
            -1.0,
            -f32::MIN_POSITIVE,
            -1e-45,
            0.0,
            1e-45,
            1.0,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ];
        for pair in ascending.windows(2) {
            assert!(
                order_key(pair[0]) < order_key(pair[1]),
                "{} < {}",
                pair[0],
                pair[1]
            );
        }
        assert_eq!(order_key(-0.0), order_key(0.0));
        assert_eq!(order_key(-f32::NAN), order_key(f32::NAN));
    }
}
