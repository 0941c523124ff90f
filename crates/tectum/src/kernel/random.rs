//! Counter-based random numbers: the native twin of `kernel/wgsl/random.wgsl`.
//!
//! Integer arithmetic ending in one exact conversion, so the same bits give the same `f32` bits on
//! every device.

use std::sync::LazyLock;

/// Length of the table of normals: 1,024 rows of three coefficients.
pub const NORMAL_TABLE_LEN: usize = 3 * 1024;

/// Computes four independent words from a counter and a key by Philox4x32-10.
///
/// # Source
///
/// Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC11; checked
/// against the known answers published with Random123.
///
/// # Example
///
/// ```
/// use tectum::kernel::random::philox;
/// assert_eq!(philox([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
/// ```
#[inline(always)]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    for _ in 0..10 {
        let (even_hi, even_lo) = multiply_wide(0xd251_1f53, c[0]);
        let (odd_hi, odd_lo) = multiply_wide(0xcd9e_8d57, c[2]);
        c = [odd_hi ^ c[1] ^ k[0], odd_lo, even_hi ^ c[3] ^ k[1], even_lo];
        k = [
            k[0].wrapping_add(0x9e37_79b9),
            k[1].wrapping_add(0xbb67_ae85),
        ];
    }
    c
}

/// Computes a uniform number in [0, 1): the upper 24 bits times 2⁻²⁴, exact.
#[inline(always)]
pub fn uniform(bits: u32) -> f32 {
    (bits >> 8) as i32 as f32 * (1.0 / 16_777_216.0)
}

/// Computes a standard normal number: negative where the top bit of `bits` is set, its magnitude
/// exceeded with probability (v + ½)/2³¹, v being the lower 31 bits.
///
/// `table` is [`normal_table`]'s; a device reads the same from a buffer.
///
/// # Numerics
///
/// A multiple of 2⁻²⁰, at most 6.34 in magnitude; off the true inverse by 7.1e-7 at most, of which
/// half a step of the grid is 4.8e-7. `normal(b)` and `normal(b ^ 0x8000_0000)` are opposites; zero
/// is +0.
///
/// # Source
///
/// Inverse of the distribution function by quadratics in 32-bit fixed point, one for each octave of
/// the tail probability and 1/32 of it, through both ends and the middle; segmented as in Cheung,
/// Lee, Luk and Villasenor, *Hardware generation of arbitrary random number distributions via the
/// inversion method*, IEEE Transactions on VLSI Systems 15 (2007).
#[inline(always)]
pub fn normal(bits: u32, table: &[i32; NORMAL_TABLE_LEN]) -> f32 {
    let v = bits & 0x7fff_ffff;
    let zeros = v.leading_zeros().min(31);
    let leading = v << zeros;
    let row = 3 * ((((31 - zeros) << 5) + (leading >> 26)) & 1023) as usize;
    let [c0, c1, c2] = [table[row], table[row + 1], table[row + 2]].map(|c| c as u32);

    // c0 - t (c1 - t c2) in units of 2^-28, t the place of v in its row as a fraction of 2^32.
    let t = leading << 6;
    let slope = c1.wrapping_sub(multiply_wide(t, c2).0);
    let size = (c0.wrapping_sub(multiply_wide(t, slope).0).wrapping_add(128) >> 8) as i32;
    let steps = if bits > 0x7fff_ffff { -size } else { size };
    steps as f32 * (1.0 / 1_048_576.0)
}

/// Returns the table that [`normal`] reads: row 32·o + s + 32 holds c0, c1, c2 for the values v
/// whose highest bit is o and whose five next bits are s, row 0 those for v = 0; rows 1 to 31 are
/// unused.
///
/// # Numerics
///
/// Built once, from float64 additions, multiplications, divisions and square roots alone, hence the
/// same on every platform.
pub fn normal_table() -> &'static [i32; NORMAL_TABLE_LEN] {
    static TABLE: LazyLock<Box<[i32; NORMAL_TABLE_LEN]>> = LazyLock::new(build_normal_table);
    &TABLE
}

fn build_normal_table() -> Box<[i32; NORMAL_TABLE_LEN]> {
    const UNIT: f64 = 268_435_456.0; // 2^28
    let mut table = Box::new([0; NORMAL_TABLE_LEN]);
    let mut z = 0.0;

    // From the centre to the tail, so that each root is a start below the next.
    for row in (32..1024).rev() {
        let width = (1u64 << (row / 32 - 1)) as f64 / 32.0;
        let place = (32 + row % 32) as f64;
        let mut node = |t: f64| {
            z = inverse_upper_tail(((place + t) * width + 0.5) / 4_294_967_296.0, z);
            z
        };
        let (end, middle, start) = (node(1.0), node(0.5), node(0.0));
        let c1 = 3.0 * start - 4.0 * middle + end;
        let c2 = 2.0 * (start - 2.0 * middle + end);
        for (slot, c) in table[3 * row..].iter_mut().zip([start, c1, c2]) {
            *slot = (c * UNIT + 0.5) as i32;
        }
    }
    table[0] = (inverse_upper_tail(0.5 / 4_294_967_296.0, z) * UNIT + 0.5) as i32;
    table
}

/// The z whose upper tail is `tail`, by Newton's method from a `start` below it.
fn inverse_upper_tail(tail: f64, start: f64) -> f64 {
    let mut z = start;
    for _ in 0..64 {
        let step = (upper_tail(z) - tail) / density(z);
        z += step;
        if step.abs() < 1e-14 {
            break;
        }
    }
    z
}

/// Probability that a standard normal exceeds z ≥ 0: power series below 3, continued fraction
/// above.
fn upper_tail(z: f64) -> f64 {
    if z < 3.0 {
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term > 1e-18 {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        return 0.5 - density(z) * sum;
    }
    let fraction = (1..=120).rev().fold(z, |below, k| z + f64::from(k) / below);
    density(z) / fraction
}

/// The standard normal density.
fn density(z: f64) -> f64 {
    const SQRT_2_PI: f64 = 2.506_628_274_631_000_5;
    let y = z * z / 64.0;
    let mut e = (1..=24)
        .rev()
        .fold(1.0, |sum, k| 1.0 - sum * y / f64::from(k));
    for _ in 0..5 {
        e *= e;
    }
    e / SQRT_2_PI
}

/// The 64-bit product of two words: high word, low word.
#[inline(always)]
fn multiply_wide(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    ((product >> 32) as u32, product as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content hash of the table's 12,288 bytes, little-endian.
    const TABLE_HASH: &str = "62ca631e991aa4b807ae99a6218b3d82ca37a2658a563059625687c1410bc67e";
    /// The bound stated in [`normal`]'s documentation.
    const NORMAL_ERROR: f64 = 7.1e-7;

    #[test]
    fn philox_gives_the_published_answers() {
        let cases = [
            (
                [0; 4],
                [0; 2],
                [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
            ),
            (
                [!0; 4],
                [!0; 2],
                [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
            ),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox(counter, key), expected, "{counter:x?} {key:x?}");
        }
    }

    #[test]
    fn uniform_is_exact_and_below_one() {
        assert_eq!(uniform(0), 0.0);
        assert_eq!(uniform(0x8000_00ff), 0.5);
        assert_eq!(uniform(!0), 1.0 - f32::EPSILON / 2.0);
    }

    #[test]
    fn upper_tail_gives_tabulated_probabilities() {
        let tabulated = [
            (1.959_963_984_540_054, 0.025),
            (3.0, 1.349_898_031_630_094_5e-3),
            (6.0, 9.865_876_450_376_98e-10),
        ];
        for (z, tail) in tabulated {
            assert!(
                (upper_tail(z) / tail - 1.0).abs() < 1e-12,
                "upper_tail({z}) = {}",
                upper_tail(z)
            );
            assert!(
                (inverse_upper_tail(tail, 0.0) - z).abs() < 1e-12,
                "the inverse at {tail}"
            );
        }
    }

    #[test]
    fn the_table_of_normals_is_the_same_on_every_platform() {
        let bytes: Vec<u8> = normal_table()
            .iter()
            .flat_map(|c| c.to_le_bytes())
            .collect();
        assert_eq!(
            crate::content_hash::ContentHash::of(&bytes).to_string(),
            TABLE_HASH
        );
    }

    #[test]
    fn normals_follow_the_inverse_distribution() {
        let table = normal_table();
        let (mut v, mut z) = (0x7fff_ffffu32, 0.0);
        while v > 0 {
            z = inverse_upper_tail((f64::from(v) + 0.5) / 4_294_967_296.0, z);
            let error = (f64::from(normal(v, table)) - z).abs();
            assert!(error <= NORMAL_ERROR, "normal({v:#x}) is off by {error}");
            v -= (v >> 9).max(1);
        }
        assert_eq!(normal(0, table), 6.337_957_4);
    }

    #[test]
    fn normals_are_symmetric_and_decrease_from_the_tail_inwards() {
        let table = normal_table();
        let mut last = f32::INFINITY;
        for v in (0..1u32 << 31).step_by(9_973) {
            let z = normal(v, table);
            assert!(z <= last && z >= 0.0, "at {v:#x}");
            assert_eq!(normal(v | 0x8000_0000, table), -z);
            last = z;
        }
        assert_eq!(normal(!0, table).to_bits(), 0, "zero is positive");
    }

    #[test]
    fn the_moments_of_the_normal_are_those_of_a_gaussian() {
        // Over evenly spaced bits, hence no sampling error: 0, 1, 0 and 3.
        let count = 1u32 << 18;
        let mut moments = [0.0; 4];
        for i in 0..count {
            let z = f64::from(normal((i << 14) | (1 << 13), normal_table()));
            for (power, moment) in moments.iter_mut().enumerate() {
                *moment += z.powi(power as i32 + 1) / f64::from(count);
            }
        }
        for (moment, (exact, tolerance)) in
            moments
                .iter()
                .zip([(0.0, 1e-5), (1.0, 1e-4), (0.0, 1e-3), (3.0, 1e-2)])
        {
            assert!((moment - exact).abs() < tolerance, "{moments:?}");
        }
    }

    #[test]
    fn philox_normals_pass_kolmogorov_smirnov() {
        let mut sample: Vec<f64> = (0..1u32 << 13)
            .flat_map(|i| {
                philox([i, 0, 0, 0], [7, 11]).map(|bits| f64::from(normal(bits, normal_table())))
            })
            .collect();
        sample.sort_by(f64::total_cmp);
        let count = sample.len() as f64;
        let distance = sample.iter().enumerate().fold(0.0f64, |worst, (i, &z)| {
            let below = if z < 0.0 {
                upper_tail(-z)
            } else {
                1.0 - upper_tail(z)
            };
            worst
                .max((below - i as f64 / count).abs())
                .max((below - (i + 1) as f64 / count).abs())
        });
        // 1.628 / sqrt(n) is the critical value at 1 %.
        assert!(
            distance < 1.628 / count.sqrt(),
            "distance {distance} over {count}"
        );
    }
}
