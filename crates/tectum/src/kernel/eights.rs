//! Eight floats at a time, one register where there are such registers (AVX2), with the same bits everywhere.
//!
//! A loop over a few eights with many operands is more than a compiler makes vectors of by itself. [`eights`] runs [`Work`] with the
//! machine's [`Lanes`]; every function on the way from there to an [`F8`] must be marked `#[inline(always)]`, else it is compiled for
//! the baseline. Products and sums are rounded one by one.

use std::ops::{Add, AddAssign, Mul, Sub};

use super::native::simd;

/// How a machine holds eight floats.
pub trait Lanes: Copy {
    /// Eight floats.
    type Register: Copy;
    /// From memory.
    fn load(self, x: &[f32; 8]) -> Self::Register;
    /// To memory.
    fn store(self, x: Self::Register) -> [f32; 8];
    /// a + b.
    fn add(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// a − b.
    fn sub(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// a · b.
    fn mul(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// |x|.
    fn abs(self, x: Self::Register) -> Self::Register;
    /// The lesser of each pair of numbers.
    fn min(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The greater of each pair of numbers.
    fn max(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// 1 where a < b, else 0.
    fn is_below(self, a: Self::Register, b: Self::Register) -> Self::Register;
}

/// Eight floats, with arithmetic lane by lane.
#[derive(Clone, Copy)]
pub struct F8<L: Lanes>(L, L::Register);

impl<L: Lanes> F8<L> {
    /// From memory.
    #[inline(always)]
    pub fn load(lanes: L, x: &[f32; 8]) -> Self {
        Self(lanes, lanes.load(x))
    }

    /// One number in every lane.
    #[inline(always)]
    pub fn splat(lanes: L, x: f32) -> Self {
        Self::load(lanes, &[x; 8])
    }

    /// To memory.
    #[inline(always)]
    pub fn store(self) -> [f32; 8] {
        self.0.store(self.1)
    }

    /// |x|.
    #[inline(always)]
    #[must_use]
    pub fn abs(self) -> Self {
        Self(self.0, self.0.abs(self.1))
    }

    /// Held to ±limit. A NaN may become anything.
    #[inline(always)]
    #[must_use]
    pub fn held_to(self, limit: f32) -> Self {
        let (low, high) = (Self::splat(self.0, -limit), Self::splat(self.0, limit));
        Self(self.0, self.0.min(self.0.max(self.1, low.1), high.1))
    }

    /// 1 where it is less than the other, else 0.
    #[inline(always)]
    #[must_use]
    pub fn is_below(self, other: Self) -> Self {
        Self(self.0, self.0.is_below(self.1, other.1))
    }

    /// The sum of the lanes, in a tree.
    #[inline(always)]
    pub fn fold(self) -> f32 {
        fold(self.store())
    }
}

/// The sum of eight lanes, in a tree.
#[inline(always)]
pub fn fold(lanes: [f32; 8]) -> f32 {
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

macro_rules! operators {
    ($($operator:ident $function:ident)*) => {
        $(
            impl<L: Lanes> $operator for F8<L> {
                type Output = Self;

                #[inline(always)]
                fn $function(self, other: Self) -> Self {
                    Self(self.0, self.0.$function(self.1, other.1))
                }
            }
        )*
    };
}

operators! { Add add Sub sub Mul mul }

impl<L: Lanes> AddAssign for F8<L> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Numbers in eights; a rest is left out.
#[inline(always)]
pub fn in_eights(numbers: &[f32]) -> &[[f32; 8]] {
    numbers.as_chunks().0
}

/// As [`in_eights`].
#[inline(always)]
pub fn in_eights_mut(numbers: &mut [f32]) -> &mut [[f32; 8]] {
    numbers.as_chunks_mut().0
}

/// What is to be done with eights.
pub trait Work {
    /// Does it. Must be marked `#[inline(always)]`.
    fn run<L: Lanes>(self, lanes: L);
}

/// Does the work with the lanes of this machine.
#[inline(always)]
pub fn eights(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    if let Some(v3) = pulp::x86::V3::try_new() {
        return v3.vectorize(OnV3(v3, work));
    }
    simd(
        #[inline(always)]
        || work.run(Portable),
    );
}

/// Lanes of any machine.
#[derive(Clone, Copy)]
struct Portable;

impl Lanes for Portable {
    type Register = [f32; 8];

    #[inline(always)]
    fn load(self, x: &[f32; 8]) -> [f32; 8] {
        *x
    }

    #[inline(always)]
    fn store(self, x: [f32; 8]) -> [f32; 8] {
        x
    }

    #[inline(always)]
    fn add(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(#[inline(always)] |lane| a[lane] + b[lane])
    }

    #[inline(always)]
    fn sub(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(#[inline(always)] |lane| a[lane] - b[lane])
    }

    #[inline(always)]
    fn mul(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(#[inline(always)] |lane| a[lane] * b[lane])
    }

    #[inline(always)]
    fn abs(self, x: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(#[inline(always)] |lane| x[lane].abs())
    }

    #[inline(always)]
    fn min(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(#[inline(always)] |lane| a[lane].min(b[lane]))
    }

    #[inline(always)]
    fn max(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(#[inline(always)] |lane| a[lane].max(b[lane]))
    }

    #[inline(always)]
    fn is_below(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(#[inline(always)] |lane| f32::from(u8::from(a[lane] < b[lane])))
    }
}

#[cfg(target_arch = "x86_64")]
struct OnV3<W>(pulp::x86::V3, W);

#[cfg(target_arch = "x86_64")]
impl<W: Work> pulp::NullaryFnOnce for OnV3<W> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.1.run(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for pulp::x86::V3 {
    type Register = std::arch::x86_64::__m256;

    #[inline(always)]
    fn load(self, x: &[f32; 8]) -> Self::Register {
        pulp::cast(*x)
    }

    #[inline(always)]
    fn store(self, x: Self::Register) -> [f32; 8] {
        pulp::cast(x)
    }

    #[inline(always)]
    fn add(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.avx._mm256_add_ps(a, b)
    }

    #[inline(always)]
    fn sub(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.avx._mm256_sub_ps(a, b)
    }

    #[inline(always)]
    fn mul(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.avx._mm256_mul_ps(a, b)
    }

    #[inline(always)]
    fn abs(self, x: Self::Register) -> Self::Register {
        self.avx._mm256_andnot_ps(self.avx._mm256_set1_ps(-0.0), x)
    }

    #[inline(always)]
    fn min(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.avx._mm256_min_ps(a, b)
    }

    #[inline(always)]
    fn max(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.avx._mm256_max_ps(a, b)
    }

    #[inline(always)]
    fn is_below(self, a: Self::Register, b: Self::Register) -> Self::Register {
        let avx = self.avx;
        avx._mm256_and_ps(avx._mm256_cmp_ps::<{ std::arch::x86_64::_CMP_LT_OQ }>(a, b), avx._mm256_set1_ps(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses every operation once.
    struct Every<'a>([&'a [f32; 8]; 2], &'a mut Vec<[f32; 8]>);

    impl Work for Every<'_> {
        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) {
            let [a, b] = self.0.map(|x| F8::load(lanes, x));
            let mut sum = a;
            sum += b;
            let folded = F8::splat(lanes, a.fold());
// A NaN may be held to anything: only the other operand is.
            self.1.extend([a + b, a - b, a * b, b.abs(), a.is_below(b), sum, folded, b.held_to(1.25)].map(F8::store));
        }
    }

    #[test]
    fn the_machines_lanes_have_the_bits_of_the_portable_ones() {
        let a = [1.5, -2.25, f32::MIN_POSITIVE, 3e38, -0.0, f32::NAN, f32::INFINITY, 7.0];
        let b = [0.1, -1e-20, 1.0, 3e38, 0.0, 1.0, f32::NEG_INFINITY, -7.5];
        let (mut here, mut portable) = (Vec::new(), Vec::new());
        eights(Every([&a, &b], &mut here));
        Every([&a, &b], &mut portable).run(Portable);
        // The sign and the payload of a NaN are nobody's promise.
        let bits = |rows: Vec<[f32; 8]>| rows.concat().iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect::<Vec<_>>();
        assert_eq!(portable[4], [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(bits(here), bits(portable));
    }
}
