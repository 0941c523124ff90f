//! Floats side by side in the machine's registers, with the same bits whatever machine and width.
//!
//! A loop over a few numbers with many operands is more than a compiler makes vectors of by itself. [`widest`] runs [`Work`] with the
//! machine's [`Lanes`], sixteen where there is AVX-512; [`eights`] runs [`Folding`] with eight on every machine, since the order of its
//! sums hangs on the width. Every function on the way from there to [`Floats`] must be marked `#[inline(always)]`, else it is compiled
//! for the baseline. Products and sums are rounded one by one.

use std::ops::{Add, AddAssign, Mul, Sub};

use super::native::simd;

/// Numbers in memory that fill a register.
pub trait Block: Copy {
    /// How many.
    const LEN: usize;
    /// Numbers cut into blocks; a rest is left out.
    fn cut(numbers: &[f32]) -> &[Self];
    /// As [`Block::cut`].
    fn cut_mut(numbers: &mut [f32]) -> &mut [Self];
    /// The four numbers over and over.
    fn repeat(four: [f32; 4]) -> Self;
}

impl<const N: usize> Block for [f32; N] {
    const LEN: usize = N;

    #[inline(always)]
    fn cut(numbers: &[f32]) -> &[Self] {
        numbers.as_chunks().0
    }

    #[inline(always)]
    fn cut_mut(numbers: &mut [f32]) -> &mut [Self] {
        numbers.as_chunks_mut().0
    }

    #[inline(always)]
    fn repeat(four: [f32; 4]) -> Self {
        std::array::from_fn(#[inline(always)] |lane| four[lane % 4])
    }
}

/// How a machine holds a block of floats.
pub trait Lanes: Copy {
    /// A block.
    type Block: Block;
    /// The register that holds it.
    type Register: Copy;
    /// From memory.
    fn load(self, x: &Self::Block) -> Self::Register;
    /// To memory.
    fn store(self, x: Self::Register) -> Self::Block;
    /// a + b.
    fn add(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// a − b.
    fn sub(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// a · b.
    fn mul(self, a: Self::Register, b: Self::Register) -> Self::Register;
}

/// Eight lanes, with what a sum over them needs.
pub trait EightLanes: Lanes<Block = [f32; 8]> {
    /// |x|.
    fn abs(self, x: Self::Register) -> Self::Register;
    /// The lesser of each pair of numbers.
    fn min(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The greater of each pair of numbers.
    fn max(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// 1 where a < b, else 0.
    fn is_below(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The sum of the lanes, in a tree: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)).
    fn fold(self, x: Self::Register) -> f32;
}

/// A block of floats in a register, with arithmetic lane by lane.
#[derive(Clone, Copy)]
pub struct Floats<L: Lanes>(L, L::Register);

impl<L: Lanes> Floats<L> {
    /// From memory.
    #[inline(always)]
    pub fn load(lanes: L, x: &L::Block) -> Self {
        Self(lanes, lanes.load(x))
    }

    /// One number in every lane.
    #[inline(always)]
    pub fn splat(lanes: L, x: f32) -> Self {
        Self::repeat(lanes, [x; 4])
    }

    /// The four numbers over and over.
    #[inline(always)]
    pub fn repeat(lanes: L, four: [f32; 4]) -> Self {
        Self::load(lanes, &L::Block::repeat(four))
    }

    /// To memory.
    #[inline(always)]
    pub fn store(self) -> L::Block {
        self.0.store(self.1)
    }
}

impl<L: EightLanes> Floats<L> {
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
        self.0.fold(self.1)
    }
}

macro_rules! operators {
    ($($operator:ident $function:ident)*) => {
        $(
            impl<L: Lanes> $operator for Floats<L> {
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

impl<L: Lanes> AddAssign for Floats<L> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// The sum of eight lanes, in the tree of [`EightLanes::fold`].
#[inline(always)]
pub fn fold(x: [f32; 8]) -> f32 {
    ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
}

/// What is to be done lane by lane.
pub trait Work {
    /// Does it. Must be marked `#[inline(always)]`.
    fn run<L: Lanes>(self, lanes: L);
}

/// What is to be done with sums over lanes.
pub trait Folding {
    /// Does it. Must be marked `#[inline(always)]`.
    fn run<L: EightLanes>(self, lanes: L);
}

/// Does the work with the widest registers of this machine that all of `lengths` are multiples of, eight lanes at least.
#[inline(always)]
pub fn widest(lengths: &[usize], work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    if lengths.iter().all(|len| len.is_multiple_of(16))
        && let Some(v4) = pulp::x86::V4::try_new()
    {
        return v4.vectorize(OnV4(v4, work));
    }
    eights(Plain(work));
}

/// Does the work eight lanes at a time.
#[inline(always)]
pub fn eights(work: impl Folding) {
    #[cfg(target_arch = "x86_64")]
    if let Some(v3) = pulp::x86::V3::try_new() {
        return v3.vectorize(OnV3(v3, work));
    }
    simd(
        #[inline(always)]
        || work.run(Portable),
    );
}

/// Work that sums nothing up.
struct Plain<W>(W);

impl<W: Work> Folding for Plain<W> {
    #[inline(always)]
    fn run<L: EightLanes>(self, lanes: L) {
        self.0.run(lanes);
    }
}

/// Lanes of any machine.
#[derive(Clone, Copy)]
struct Portable;

impl Lanes for Portable {
    type Block = [f32; 8];
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
}

impl EightLanes for Portable {
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

    #[inline(always)]
    fn fold(self, x: [f32; 8]) -> f32 {
        fold(x)
    }
}

#[cfg(target_arch = "x86_64")]
struct OnV3<W>(pulp::x86::V3, W);

#[cfg(target_arch = "x86_64")]
impl<W: Folding> pulp::NullaryFnOnce for OnV3<W> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.1.run(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
struct OnV4<W>(pulp::x86::V4, W);

#[cfg(target_arch = "x86_64")]
impl<W: Work> pulp::NullaryFnOnce for OnV4<W> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.1.run(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for pulp::x86::V3 {
    type Block = [f32; 8];
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
}

#[cfg(target_arch = "x86_64")]
impl EightLanes for pulp::x86::V3 {
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

    #[inline(always)]
    fn fold(self, x: Self::Register) -> f32 {
        let (avx, sse) = (self.avx, self.sse);
        // Lane i with lane i + 4, then with lane i + 2, then with lane i + 1.
        let four = sse._mm_add_ps(avx._mm256_castps256_ps128(x), avx._mm256_extractf128_ps::<1>(x));
        let two = sse._mm_add_ps(four, sse._mm_movehl_ps(four, four));
        sse._mm_cvtss_f32(sse._mm_add_ss(two, sse._mm_shuffle_ps::<0b01>(two, two)))
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for pulp::x86::V4 {
    type Block = [f32; 16];
    type Register = std::arch::x86_64::__m512;

    #[inline(always)]
    fn load(self, x: &[f32; 16]) -> Self::Register {
        pulp::cast(*x)
    }

    #[inline(always)]
    fn store(self, x: Self::Register) -> [f32; 16] {
        pulp::cast(x)
    }

    #[inline(always)]
    fn add(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.avx512f._mm512_add_ps(a, b)
    }

    #[inline(always)]
    fn sub(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.avx512f._mm512_sub_ps(a, b)
    }

    #[inline(always)]
    fn mul(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.avx512f._mm512_mul_ps(a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses every operation of eight lanes once.
    struct Every<'a>([&'a [f32; 8]; 2], &'a mut Vec<[f32; 8]>);

    impl Folding for Every<'_> {
        #[inline(always)]
        fn run<L: EightLanes>(self, lanes: L) {
            let [a, b] = self.0.map(|x| Floats::load(lanes, x));
            let mut sum = a;
            sum += b;
            let folded = Floats::splat(lanes, a.fold());
            // A NaN may be held to anything: only the other operand is.
            self.1.extend([a + b, a - b, a * b, b.abs(), a.is_below(b), sum, folded, b.held_to(1.25)].map(Floats::store));
        }
    }

    /// Every operation of any width, over all numbers.
    struct Plainly<'a>([&'a [f32]; 2], &'a mut [f32]);

    impl Work for Plainly<'_> {
        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) {
            let Self([a, b], y) = self;
            for ((y, a), b) in L::Block::cut_mut(y).iter_mut().zip(L::Block::cut(a)).zip(L::Block::cut(b)) {
                let [a, b] = [a, b].map(|x| Floats::load(lanes, x));
                let factors = Floats::repeat(lanes, [1.5, -0.1, 1e-20, 3.0]);
                *y = ((a + b) * factors - Floats::splat(lanes, 0.3) * a).store();
            }
        }
    }

    const A: [f32; 8] = [1.5, -2.25, f32::MIN_POSITIVE, 3e38, -0.0, f32::NAN, f32::INFINITY, 7.0];
    const B: [f32; 8] = [0.1, -1e-20, 1.0, 3e38, 0.0, 1.0, f32::NEG_INFINITY, -7.5];

    /// The sign and the payload of a NaN are nobody's promise.
    fn bits(numbers: &[f32]) -> Vec<u32> {
        numbers.iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect()
    }

    #[test]
    fn the_machines_eight_lanes_have_the_bits_of_the_portable_ones() {
        let (mut here, mut portable) = (Vec::new(), Vec::new());
        eights(Every([&A, &B], &mut here));
        Every([&A, &B], &mut portable).run(Portable);
        assert_eq!(portable[4], [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(bits(here.as_flattened()), bits(portable.as_flattened()));
        // In a tree, not one after another: 1 is lost beside 2^25 if it comes to it alone.
        let x = [33_554_432.0, 1.0, -33_554_432.0, 1.0, 0.0, 1.0, 0.0, 1.0];
        let mut folded = Vec::new();
        eights(Every([&x, &B], &mut folded));
        assert_eq!(folded[6], [4.0; 8]);
    }

    #[test]
    fn the_widest_lanes_have_the_bits_of_eight() {
        let a: Vec<f32> = [A, B, B, A, A, A].concat();
        let b: Vec<f32> = [B, A, A, A, B, B].concat();
        let mut eight = vec![0.0; a.len()];
        eights(Plain(Plainly([&a, &b], &mut eight)));
        for lengths in [&[48][..], &[16, 8], &[]] {
            let mut widest_lanes = vec![0.0; a.len()];
            widest(lengths, Plainly([&a, &b], &mut widest_lanes));
            assert_eq!(bits(&widest_lanes), bits(&eight));
        }
    }
}
