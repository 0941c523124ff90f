//! Gelu of a sum, for product epilogues.

/// x·Φ(x) within 4 units in the last place of x, for an x that is a rounded sum: the tail of
/// negative arguments is not accurate to its own last place, which would take ten times as long.
///
/// Φ(x) = ½ + x·P(x²)/Q(x²) up to 5.75, where it is 0 or 1; the rational function is a minimax fit
/// of Φ.
#[inline(always)]
pub(crate) fn gelu_erf_of_sum(x: f32) -> f32 {
    const END: f32 = 5.75;
    let inside = if x > END { END } else { x };
    let z = inside * inside;
    let p = 2.131_376_2e-8_f32;
    let p = p.mul_add(z, 6.388_157_5e-6);
    let p = p.mul_add(z, 1.823_563e-4);
    let p = p.mul_add(z, 4.758_928e-3);
    let p = p.mul_add(z, 3.523_863_4e-2);
    let p = p.mul_add(z, 3.989_422e-1);
    let q = 1.158_159_8e-6_f32;
    let q = q.mul_add(z, 7.768_029e-5);
    let q = q.mul_add(z, 1.961_457_3e-3);
    let q = q.mul_add(z, 2.943_055_1e-2);
    let q = q.mul_add(z, 2.549_955e-1);
    let q = q.mul_add(z, 1.0);
    let phi = inside.mul_add(p / q, 0.5);
    if x < -END {
        -0.0
    } else {
        x * if x > END { 1.0 } else { phi }
    }
}

#[cfg(test)]
mod tests {
    use super::gelu_erf_of_sum;
    use crate::kernel::reference;

    #[test]
    fn gelu_of_a_sum_is_within_four_units_of_its_argument() {
        let mut worst = 0.0f64;
        for step in -800_000..=800_000 {
            let x = step as f32 * 1e-5;
            let error = (f64::from(gelu_erf_of_sum(x)) - reference::gelu_erf(f64::from(x))).abs();
            worst = worst.max(error / (f64::from(x).abs() + 1e-30));
        }
        println!(
            "worst error {:.2} units of the argument",
            worst * 16_777_216.0
        );
        assert!(worst <= 4.0 / 16_777_216.0, "{worst:e}");
        for x in [f32::NEG_INFINITY, -1e30, -0.0, 0.0, 1e30, f32::INFINITY] {
            assert_eq!(
                gelu_erf_of_sum(x).to_bits(),
                (reference::gelu_erf(f64::from(x)) as f32).to_bits(),
                "{x}"
            );
        }
        assert!(gelu_erf_of_sum(f32::NAN).is_nan());
    }
}
