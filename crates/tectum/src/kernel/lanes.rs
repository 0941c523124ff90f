//! Floats side by side in the machine's registers, with the same bits on every machine and at every
//! width.
//!
//! A compiler does not vectorise a loop over a few numbers with many operands by itself.
//! [`run_widest`] runs [`Work`] with the machine's [`Lanes`], sixteen where there is AVX-512;
//! [`run_8_lanes`] and [`run_16_lanes`] run [`LaneReduction`] with as many on every machine, since
//! the order of its sums depends on the width. Every function on the way from there to [`Floats`]
//! must be marked `#[inline(always)]`, else it is compiled for the baseline. Products and sums are
//! rounded separately except in [`Floats::mul_add`].

use std::ops::{Add, AddAssign, Mul, Sub};

use super::native::simd;

/// Numbers in memory that fill a register.
pub trait Block: Copy {
    /// How many.
    const LEN: usize;
    /// Numbers split into blocks; a remainder is left out.
    fn as_blocks(numbers: &[f32]) -> &[Self];
    /// As [`Block::as_blocks`].
    fn cut_mut(numbers: &mut [f32]) -> &mut [Self];
    /// The four numbers over and over.
    fn repeat(four: [f32; 4]) -> Self;
}

impl<const N: usize> Block for [f32; N] {
    const LEN: usize = N;

    #[inline(always)]
    fn as_blocks(numbers: &[f32]) -> &[Self] {
        numbers.as_chunks().0
    }

    #[inline(always)]
    fn cut_mut(numbers: &mut [f32]) -> &mut [Self] {
        numbers.as_chunks_mut().0
    }

    #[inline(always)]
    fn repeat(four: [f32; 4]) -> Self {
        std::array::from_fn(
            #[inline(always)]
            |lane| four[lane % 4],
        )
    }
}

/// A machine's registers for a block of floats.
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
    /// a · b + c, rounded once.
    fn mul_add(self, a: Self::Register, b: Self::Register, c: Self::Register) -> Self::Register;
    /// The sum of the four bytes that a lane has as bits, 0 to 1020.
    fn sum_bytes(self, x: Self::Register) -> Self::Register;
}

/// Lanes with the operations for sums over them.
pub trait ReducingLanes: Lanes {
    /// |x|.
    fn abs(self, x: Self::Register) -> Self::Register;
    /// The minimum of each pair of numbers.
    fn min(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The maximum of each pair of numbers.
    fn max(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// 1 where a < b, else 0.
    fn less_than(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The sum of the lanes, in a tree: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)) of eight, and of
    /// sixteen that of i + (i + 8).
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

    /// self · b + c, rounded once.
    #[inline(always)]
    #[must_use]
    pub fn mul_add(self, b: Self, c: Self) -> Self {
        Self(self.0, self.0.mul_add(self.1, b.1, c.1))
    }

    /// The sum of the four bytes that a lane has as bits, 0 to 1020.
    #[inline(always)]
    #[must_use]
    pub fn sum_bytes(self) -> Self {
        Self(self.0, self.0.sum_bytes(self.1))
    }
}

impl<L: ReducingLanes> Floats<L> {
    /// |x|.
    #[inline(always)]
    #[must_use]
    pub fn abs(self) -> Self {
        Self(self.0, self.0.abs(self.1))
    }

    /// Clamped to ±limit. A NaN may become anything.
    #[inline(always)]
    #[must_use]
    pub fn clamp_abs(self, limit: f32) -> Self {
        let (low, high) = (Self::splat(self.0, -limit), Self::splat(self.0, limit));
        Self(self.0, self.0.min(self.0.max(self.1, low.1), high.1))
    }

    /// 1 where it is less than the other, else 0.
    #[inline(always)]
    #[must_use]
    pub fn less_than(self, other: Self) -> Self {
        Self(self.0, self.0.less_than(self.1, other.1))
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

/// The sum of eight lanes, in the tree of [`ReducingLanes::fold`].
#[inline(always)]
pub fn fold(x: [f32; 8]) -> f32 {
    ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
}

/// Work that is done lane by lane.
pub trait Work {
    /// Does it. Must be marked `#[inline(always)]`.
    fn run<L: Lanes>(self, lanes: L);
}

/// Work with sums over lanes.
pub trait LaneReduction {
    /// Does it. Must be marked `#[inline(always)]`.
    fn run<L: ReducingLanes>(self, lanes: L);
}

/// Does the work with the widest registers of this machine that all of `lengths` are multiples of,
/// eight lanes at least.
#[inline(always)]
pub fn run_widest(lengths: &[usize], work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    if lengths.iter().all(|len| len.is_multiple_of(16))
        && let Some(v4) = pulp::x86::V4::try_new()
    {
        return v4.vectorize(On(v4, Plain(work)));
    }
    run_8_lanes(Plain(work));
}

/// Does the work eight lanes at a time.
#[inline(always)]
pub fn run_8_lanes(work: impl LaneReduction) {
    #[cfg(target_arch = "x86_64")]
    if let Some(v3) = pulp::x86::V3::try_new() {
        return v3.vectorize(On(v3, work));
    }
    simd(
        #[inline(always)]
        || work.run(Portable),
    );
}

/// Does the work sixteen lanes at a time.
#[inline(always)]
pub fn run_16_lanes(work: impl LaneReduction) {
    #[cfg(target_arch = "x86_64")]
    if let Some(v4) = pulp::x86::V4::try_new() {
        return v4.vectorize(On(v4, work));
    } else if let Some(v3) = pulp::x86::V3::try_new() {
        return v3.vectorize(On(Pairs(v3), work));
    }
    simd(
        #[inline(always)]
        || work.run(Pairs(Portable)),
    );
}

/// Work without sums.
struct Plain<W>(W);

impl<W: Work> LaneReduction for Plain<W> {
    #[inline(always)]
    fn run<L: ReducingLanes>(self, lanes: L) {
        self.0.run(lanes);
    }
}

/// Work with its lanes.
#[cfg(target_arch = "x86_64")]
struct On<L, W>(L, W);

#[cfg(target_arch = "x86_64")]
impl<L: ReducingLanes, W: LaneReduction> pulp::NullaryFnOnce for On<L, W> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.1.run(self.0);
    }
}

/// Sixteen lanes built from two times eight.
#[derive(Clone, Copy)]
struct Pairs<L>(L);

macro_rules! on_both {
    ($($function:ident($($x:ident),+);)*) => {
        $(
            #[inline(always)]
            fn $function(self, $($x: Self::Register),+) -> Self::Register {
                [self.0.$function($($x[0]),+), self.0.$function($($x[1]),+)]
            }
        )*
    };
}

impl<L: Lanes<Block = [f32; 8]>> Lanes for Pairs<L> {
    type Block = [f32; 16];
    type Register = [L::Register; 2];

    #[inline(always)]
    fn load(self, x: &[f32; 16]) -> Self::Register {
        let (halves, _) = x.as_chunks();
        [self.0.load(&halves[0]), self.0.load(&halves[1])]
    }

    #[inline(always)]
    fn store(self, x: Self::Register) -> [f32; 16] {
        bytemuck::cast([self.0.store(x[0]), self.0.store(x[1])])
    }

    on_both! {
        add(a, b);
        sub(a, b);
        mul(a, b);
        mul_add(a, b, c);
        sum_bytes(x);
    }
}

impl<L: ReducingLanes<Block = [f32; 8]>> ReducingLanes for Pairs<L> {
    on_both! {
        abs(x);
        min(a, b);
        max(a, b);
        less_than(a, b);
    }

    #[inline(always)]
    fn fold(self, x: Self::Register) -> f32 {
        self.0.fold(self.0.add(x[0], x[1]))
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
        std::array::from_fn(
            #[inline(always)]
            |lane| a[lane] + b[lane],
        )
    }

    #[inline(always)]
    fn sub(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(
            #[inline(always)]
            |lane| a[lane] - b[lane],
        )
    }

    #[inline(always)]
    fn mul(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(
            #[inline(always)]
            |lane| a[lane] * b[lane],
        )
    }

    #[inline(always)]
    fn mul_add(self, a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(
            #[inline(always)]
            |lane| a[lane].mul_add(b[lane], c[lane]),
        )
    }

    #[inline(always)]
    fn sum_bytes(self, x: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(
            #[inline(always)]
            |lane| {
                x[lane]
                    .to_bits()
                    .to_le_bytes()
                    .into_iter()
                    .map(u32::from)
                    .sum::<u32>() as f32
            },
        )
    }
}

impl ReducingLanes for Portable {
    #[inline(always)]
    fn abs(self, x: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(
            #[inline(always)]
            |lane| x[lane].abs(),
        )
    }

    #[inline(always)]
    fn min(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(
            #[inline(always)]
            |lane| a[lane].min(b[lane]),
        )
    }

    #[inline(always)]
    fn max(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(
            #[inline(always)]
            |lane| a[lane].max(b[lane]),
        )
    }

    #[inline(always)]
    fn less_than(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(
            #[inline(always)]
            |lane| f32::from(u8::from(a[lane] < b[lane])),
        )
    }

    #[inline(always)]
    fn fold(self, x: [f32; 8]) -> f32 {
        fold(x)
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

    #[inline(always)]
    fn mul_add(self, a: Self::Register, b: Self::Register, c: Self::Register) -> Self::Register {
        self.fma._mm256_fmadd_ps(a, b, c)
    }

    #[inline(always)]
    fn sum_bytes(self, x: Self::Register) -> Self::Register {
        let (avx, avx2) = (self.avx, self.avx2);
        let pairs = avx2._mm256_maddubs_epi16(avx._mm256_castps_si256(x), avx._mm256_set1_epi8(1));
        avx._mm256_cvtepi32_ps(avx2._mm256_madd_epi16(pairs, avx._mm256_set1_epi16(1)))
    }
}

#[cfg(target_arch = "x86_64")]
impl ReducingLanes for pulp::x86::V3 {
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
    fn less_than(self, a: Self::Register, b: Self::Register) -> Self::Register {
        let avx = self.avx;
        avx._mm256_and_ps(
            avx._mm256_cmp_ps::<{ std::arch::x86_64::_CMP_LT_OQ }>(a, b),
            avx._mm256_set1_ps(1.0),
        )
    }

    #[inline(always)]
    fn fold(self, x: Self::Register) -> f32 {
        let (avx, sse) = (self.avx, self.sse);
        // Lane i with lane i + 4, then with lane i + 2, then with lane i + 1.
        let four = sse._mm_add_ps(
            avx._mm256_castps256_ps128(x),
            avx._mm256_extractf128_ps::<1>(x),
        );
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

    #[inline(always)]
    fn mul_add(self, a: Self::Register, b: Self::Register, c: Self::Register) -> Self::Register {
        self.avx512f._mm512_fmadd_ps(a, b, c)
    }

    #[inline(always)]
    fn sum_bytes(self, x: Self::Register) -> Self::Register {
        let (avx512, words) = (self.avx512f, self.avx512bw);
        let pairs =
            words._mm512_maddubs_epi16(avx512._mm512_castps_si512(x), avx512._mm512_set1_epi8(1));
        avx512._mm512_cvtepi32_ps(words._mm512_madd_epi16(pairs, avx512._mm512_set1_epi16(1)))
    }
}

#[cfg(target_arch = "x86_64")]
impl ReducingLanes for pulp::x86::V4 {
    #[inline(always)]
    fn abs(self, x: Self::Register) -> Self::Register {
        self.avx512f._mm512_abs_ps(x)
    }

    #[inline(always)]
    fn min(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.avx512f._mm512_min_ps(a, b)
    }

    #[inline(always)]
    fn max(self, a: Self::Register, b: Self::Register) -> Self::Register {
        self.avx512f._mm512_max_ps(a, b)
    }

    #[inline(always)]
    fn less_than(self, a: Self::Register, b: Self::Register) -> Self::Register {
        let avx512 = self.avx512f;
        avx512._mm512_maskz_mov_ps(
            avx512._mm512_cmplt_ps_mask(a, b),
            avx512._mm512_set1_ps(1.0),
        )
    }

    #[inline(always)]
    fn fold(self, x: Self::Register) -> f32 {
        let v3 = *self;
        v3.fold(v3.avx._mm256_add_ps(
            self.avx512f._mm512_castps512_ps256(x),
            self.avx512dq._mm512_extractf32x8_ps::<1>(x),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses every operation once, with as many lanes as a block of the numbers has.
    struct Every<'a>([&'a [f32]; 2], &'a mut Vec<f32>);

    impl LaneReduction for Every<'_> {
        #[inline(always)]
        fn run<L: ReducingLanes>(self, lanes: L) {
            let [a, b] = self
                .0
                .map(|x| Floats::load(lanes, &L::Block::as_blocks(x)[0]));
            let mut sum = a;
            sum += b;
            let folded = Floats::splat(lanes, a.fold());
            let mut all = vec![0.0; 10 * L::Block::LEN];
            // A NaN may be clamped to anything: only the other operand is clamped.
            let made = [
                a + b,
                a - b,
                a * b,
                b.abs(),
                a.less_than(b),
                sum,
                folded,
                b.clamp_abs(1.25),
                a.mul_add(b, a),
                a.sum_bytes(),
            ];
            L::Block::cut_mut(&mut all)
                .iter_mut()
                .zip(made)
                .for_each(|(all, made)| *all = made.store());
            self.1.extend(all);
        }
    }

    /// Every operation of any width, over all numbers.
    struct Plainly<'a>([&'a [f32]; 2], &'a mut [f32]);

    impl Work for Plainly<'_> {
        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) {
            let Self([a, b], y) = self;
            for ((y, a), b) in L::Block::cut_mut(y)
                .iter_mut()
                .zip(L::Block::as_blocks(a))
                .zip(L::Block::as_blocks(b))
            {
                let [a, b] = [a, b].map(|x| Floats::load(lanes, x));
                let factors = Floats::repeat(lanes, [1.5, -0.1, 1e-20, 3.0]);
                *y = ((a + b) * factors - Floats::splat(lanes, 0.3).mul_add(a, b)).store();
            }
        }
    }

    const A: [f32; 8] = [
        1.5,
        -2.25,
        f32::MIN_POSITIVE,
        3e38,
        -0.0,
        f32::NAN,
        f32::INFINITY,
        7.0,
    ];
    const B: [f32; 8] = [0.1, -1e-20, 1.0, 3e38, 0.0, 1.0, f32::NEG_INFINITY, -7.5];

    /// The sign and the payload of a NaN are not guaranteed.
    fn bits(numbers: &[f32]) -> Vec<u32> {
        numbers
            .iter()
            .map(|x| if x.is_nan() { 0 } else { x.to_bits() })
            .collect()
    }

    #[test]
    fn the_machines_lanes_have_the_bits_of_the_portable_ones() {
        let (mut here, mut portable) = (Vec::new(), Vec::new());
        run_8_lanes(Every([&A, &B], &mut here));
        Every([&A, &B], &mut portable).run(Portable);
        assert_eq!(portable[32..40], [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(portable[72..76], [255.0, 208.0, 128.0, 631.0]);
        assert_eq!(bits(&here), bits(&portable));
        let (a, b) = ([A, B].concat(), [B, A].concat());
        let (mut here, mut portable) = (Vec::new(), Vec::new());
        run_16_lanes(Every([&a, &b], &mut here));
        Every([&a, &b], &mut portable).run(Pairs(Portable));
        assert_eq!(here.len(), 10 * 16);
        assert_eq!(bits(&here), bits(&portable));
        #[cfg(target_arch = "x86_64")]
        if let Some(v3) = pulp::x86::V3::try_new() {
            let mut pairs = Vec::new();
            v3.vectorize(On(Pairs(v3), Every([&a, &b], &mut pairs)));
            assert_eq!(bits(&pairs), bits(&portable));
        }
    }

    #[test]
    fn sums_over_lanes_are_trees() {
        // Not one after another: 1 is lost if it is added to 2^25 alone.
        let x = [33_554_432.0, 1.0, -33_554_432.0, 1.0, 0.0, 1.0, 0.0, 1.0];
        let mut folded = Vec::new();
        run_8_lanes(Every([&x, &B], &mut folded));
        assert_eq!(folded[48..56], [4.0; 8]);
        // First each lane with the lane eight further: within a half 1 is lost.
        let [mut x, mut y] = [[0.0; 8]; 2];
        (x[1], x[3], y[1]) = (33_554_432.0, 1.0, -33_554_432.0);
        let mut folded = Vec::new();
        run_16_lanes(Every([&[x, y].concat(), &[B, B].concat()], &mut folded));
        assert_eq!(folded[96..112], [1.0; 16]);
    }

    #[test]
    fn the_widest_lanes_have_the_bits_of_eight() {
        let a: Vec<f32> = [A, B, B, A, A, A].concat();
        let b: Vec<f32> = [B, A, A, A, B, B].concat();
        let mut eight = vec![0.0; a.len()];
        run_8_lanes(Plain(Plainly([&a, &b], &mut eight)));
        for lengths in [&[48][..], &[16, 8], &[]] {
            let mut widest_lanes = vec![0.0; a.len()];
            run_widest(lengths, Plainly([&a, &b], &mut widest_lanes));
            assert_eq!(bits(&widest_lanes), bits(&eight));
        }
    }
}
