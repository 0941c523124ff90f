//! Products of rows of codes with one panel of codes or two side by side, by tiles in registers:
//! [`strip`](crate::operation::product::strip) for integers.
//!
//! Sums of products of bytes are exact, so every form below gives the same bits. Processors
//! multiply unsigned by signed bytes: 128 is added to the codes of the rows, and 128 times the sum
//! of a column's codes, which its panel stores, is subtracted.

use crate::kernel::native::{PrefetchHint, prefetch_unchecked, simd};
use crate::operation::product::panel_format::{HEAD, PANEL};
use crate::operation::product::strip::{self, EpilogueLines, StripEpilogue};
use crate::operation::product::tiles::{pack_tiles_of, tiles};

/// Flips the sign bit of each byte of a word: adds 128 to codes.
const SIGNS: u32 = 0x8080_8080;

/// Words of a row after which a tile prefetches what its epilogue accesses in one more row.
const PREFETCH_INTERVAL: usize = strip::PREFETCH_INTERVAL / 4;

/// How a processor multiplies bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// AVX-512 VNNI: 64 products an instruction.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// AVX2, with FMA: bytes widened to 16 bits.
    #[cfg(target_arch = "x86_64")]
    Wide,
    /// Plain loops.
    Plain,
}

/// The fastest form of this machine.
fn form() -> Form {
    static FORM: std::sync::LazyLock<Form> = std::sync::LazyLock::new(|| forms()[0]);
    *FORM
}

/// The forms that this machine supports, the fastest first.
fn forms() -> Vec<Form> {
    let mut forms = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512vnni") {
            forms.push(Form::Vnni);
        }
        if has!("avx2") && has!("fma") {
            forms.push(Form::Wide);
        }
    }
    forms.push(Form::Plain);
    forms
}

impl Form {
    /// Rows of the tallest tile.
    const fn tile_rows(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Form::Vnni => 12,
            #[cfg(target_arch = "x86_64")]
            Form::Wide => 2,
            Form::Plain => 2,
        }
    }
}

/// Packs rows of `words` words in tiles, 128 added to each code.
pub(crate) fn pack_bytes(a: &[u32], words: usize, packed: &mut [u32]) {
    pack_for(form(), a, words, packed);
}

fn pack_for(form: Form, a: &[u32], words: usize, packed: &mut [u32]) {
    pack_tiles_of(a, words, form.tile_rows(), packed);
    simd(
        #[inline(always)]
        || packed[..a.len()].iter_mut().for_each(|word| *word ^= SIGNS),
    );
}

/// The product of rows in tiles with panels side by side, `[rows, words]·[words, 16·PANELS]`.
pub(crate) struct ByteStrip<'a, T: StripEpilogue, const PANELS: usize> {
    /// As [`pack_bytes`] packs them.
    pub a: &'a [u32],
    pub words: usize,
    /// Scale of each row.
    pub scales: &'a [f32],
    /// Panels as [`PanelFormat::Int8`](crate::operation::product::panel_format::PanelFormat::Int8)
    /// has them.
    pub b: [&'a [u32]; PANELS],
    /// The panels that are read next, as long as these or shorter.
    pub ahead: [&'a [u32]; PANELS],
    pub strip: &'a mut [f32],
    pub tail: T,
}

impl<T: StripEpilogue, const PANELS: usize> ByteStrip<'_, T, PANELS> {
    pub(crate) fn run(self) {
        self.run_as(form());
    }

    fn run_as(self, form: Form) {
        match form {
            // SAFETY: `forms` has found the instructions.
            #[cfg(target_arch = "x86_64")]
            Form::Vnni => unsafe { x86::run_vnni(self) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Form::Wide => unsafe { x86::run_wide(self) },
            Form::Plain => simd(
                #[inline(always)]
                || self.make(Plain),
            ),
        }
    }

    /// All tiles, one after another.
    #[inline(always)]
    fn make<B: Bytes>(mut self, bytes: B) {
        let rows = self.scales.len();
        let count = rows.div_ceil(B::FORM.tile_rows());
        for (index, (first, height)) in tiles(rows, B::FORM.tile_rows()).enumerate() {
            let a = &self.a[first * self.words..][..height * self.words];
            // Every tile prefetches the panels ahead, starting at its share and continuing beyond
            // it.
            let ahead = self.ahead.map(|ahead| {
                ahead
                    .get(index * (self.words + HEAD / PANEL) / count * PANEL..)
                    .unwrap_or_default()
            });
            let y = &mut self.strip[first * PANELS * PANEL..][..height * PANELS * PANEL];
            let scales = &self.scales[first..][..height];
            let a = (a, first, self.tail.lines());
            // Heights that never occur are not compiled.
            if const { PANELS > strip::MAX_PANELS_PER_PASS } {
                assert_eq!(height, 1, "invariant: only a single row has so many panels");
                tile::<B, PANELS, 1>(bytes, a, (self.b, ahead), scales, y);
            } else if const { B::FORM.tile_rows() <= 2 } {
                match height {
                    1 => tile::<B, PANELS, 1>(bytes, a, (self.b, ahead), scales, y),
                    _ => tile::<B, PANELS, 2>(bytes, a, (self.b, ahead), scales, y),
                }
            } else {
                match height {
                    1 => tile::<B, PANELS, 1>(bytes, a, (self.b, ahead), scales, y),
                    2 => tile::<B, PANELS, 2>(bytes, a, (self.b, ahead), scales, y),
                    3 => tile::<B, PANELS, 3>(bytes, a, (self.b, ahead), scales, y),
                    4 => tile::<B, PANELS, 4>(bytes, a, (self.b, ahead), scales, y),
                    5 => tile::<B, PANELS, 5>(bytes, a, (self.b, ahead), scales, y),
                    6 => tile::<B, PANELS, 6>(bytes, a, (self.b, ahead), scales, y),
                    7 => tile::<B, PANELS, 7>(bytes, a, (self.b, ahead), scales, y),
                    8 => tile::<B, PANELS, 8>(bytes, a, (self.b, ahead), scales, y),
                    9 => tile::<B, PANELS, 9>(bytes, a, (self.b, ahead), scales, y),
                    10 => tile::<B, PANELS, 10>(bytes, a, (self.b, ahead), scales, y),
                    11 => tile::<B, PANELS, 11>(bytes, a, (self.b, ahead), scales, y),
                    _ => tile::<B, PANELS, 12>(bytes, a, (self.b, ahead), scales, y),
                }
            }
            self.tail
                .end::<PANELS>(first, y.as_chunks_mut().0.as_chunks_mut().0);
        }
    }
}

/// Sums of 16 columns, and how four products are added to each.
trait Bytes: Copy {
    const FORM: Form;
    type Sums: Copy;
    type Weights: Copy;
    /// Runs work with the processor's instructions.
    fn vectorize(self, work: impl FnOnce());
    fn start(self, sums: &[i32; PANEL]) -> Self::Sums;
    fn load(self, codes: &[u32; PANEL]) -> Self::Weights;
    /// Four unsigned bytes times four signed bytes, in each column. Sums may wrap: the effect of
    /// adding 128 to the codes is subtracted.
    fn multiply_add(self, sums: Self::Sums, a: u32, codes: Self::Weights) -> Self::Sums;
    fn finish(self, sums: Self::Sums) -> [i32; PANEL];
}

/// `HEIGHT` rows of 16·PANELS columns in registers.
///
/// A function of its own, which all epilogues share.
#[inline(never)]
fn tile<B: Bytes, const PANELS: usize, const HEIGHT: usize>(
    bytes: B,
    (a, first, lines): (&[u32], usize, Option<EpilogueLines<'_>>),
    (b, ahead): ([&[u32]; PANELS], [&[u32]; PANELS]),
    scales: &[f32],
    y: &mut [f32],
) {
    bytes.vectorize(
        #[inline(always)]
        || {
            let a = a.as_chunks::<HEIGHT>().0;
            // Loops without closures: the compiler may keep those as functions that lack this one's
            // instructions.
            let (mut heads, mut codes): ([&[u32]; PANELS], [&[[u32; PANEL]]; PANELS]) =
                ([&[]; PANELS], [&[]; PANELS]);
            let mut sums = [[bytes.start(&[0; PANEL]); PANELS]; HEIGHT];
            for panel in 0..PANELS {
                let (head, rest) = b[panel].split_at(HEAD);
                (heads[panel], codes[panel]) = (head, &rest.as_chunks::<PANEL>().0[..a.len()]);
                let mut start = [0; PANEL];
                for lane in 0..PANEL {
                    start[lane] = (head[PANEL + lane] as i32).wrapping_mul(-128);
                }
                for sums in &mut sums {
                    sums[panel] = bytes.start(&start);
                }
            }
            let (asks_ahead, first_ahead) = (!ahead[0].is_empty(), ahead[0]);
            let ahead = ahead.map(|ahead| if ahead.is_empty() { first_ahead } else { ahead });
            for (part, a) in a.chunks(PREFETCH_INTERVAL).enumerate() {
                // What the epilogue accesses is prefetched in small parts: one large prefetch would stall
                // on cache lines.
                let first_word = part * PREFETCH_INTERVAL;
                if let Some(lines) = &lines
                    && part < HEIGHT
                {
                    lines.prefetch(first + part, PANELS * PANEL);
                }
                let mut codes = codes;
                for codes in &mut codes {
                    *codes = &codes[first_word..][..a.len()];
                }
                for (k, a) in a.iter().enumerate() {
                    if asks_ahead {
                        for ahead in ahead {
                            prefetch_unchecked(ahead, (first_word + k) * PANEL, PrefetchHint::Far);
                        }
                    }
                    for panel in 0..PANELS {
                        let codes = bytes.load(&codes[panel][k]);
                        for row in 0..HEIGHT {
                            sums[row][panel] = bytes.multiply_add(sums[row][panel], a[row], codes);
                        }
                    }
                }
            }
            let y: &mut [[[f32; PANEL]; PANELS]; HEIGHT] = y
                .as_chunks_mut()
                .0
                .as_chunks_mut()
                .0
                .first_chunk_mut()
                .expect("invariant: a tile is of its height");
            for (row, y) in y.iter_mut().enumerate() {
                for (panel, y) in y.iter_mut().enumerate() {
                    let sums = bytes.finish(sums[row][panel]);
                    for lane in 0..PANEL {
                        y[lane] =
                            sums[lane] as f32 * (scales[row] * f32::from_bits(heads[panel][lane]));
                    }
                }
            }
        },
    );
}

#[derive(Clone, Copy)]
struct Plain;

impl Bytes for Plain {
    const FORM: Form = Form::Plain;
    type Sums = [i32; PANEL];
    type Weights = [u32; PANEL];

    #[inline(always)]
    fn vectorize(self, work: impl FnOnce()) {
        simd(work);
    }

    #[inline(always)]
    fn start(self, sums: &[i32; PANEL]) -> Self::Sums {
        *sums
    }

    #[inline(always)]
    fn load(self, codes: &[u32; PANEL]) -> Self::Weights {
        *codes
    }

    #[inline(always)]
    fn multiply_add(self, mut sums: Self::Sums, a: u32, codes: Self::Weights) -> Self::Sums {
        for byte in 0..4 {
            let a = (a >> (8 * byte) & 0xff) as i32;
            for (sum, code) in sums.iter_mut().zip(&codes) {
                *sum = sum.wrapping_add(a * i32::from((code >> (8 * byte)) as i8));
            }
        }
        sums
    }

    #[inline(always)]
    fn finish(self, sums: Self::Sums) -> [i32; PANEL] {
        sums
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{ByteStrip, Bytes, Form, PANEL, StripEpilogue};

    /// # Safety
    /// The machine has AVX-512 F, BW, VL and VNNI.
    #[inline]
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn vnni(work: impl FnOnce()) {
        work();
    }

    /// # Safety
    /// The machine has AVX-512 F, BW, VL and VNNI.
    pub unsafe fn run_vnni<T: StripEpilogue, const PANELS: usize>(strip: ByteStrip<'_, T, PANELS>) {
        // SAFETY: by the caller's contract.
        unsafe {
            vnni(
                #[inline(always)]
                || strip.make(Vnni(())),
            );
        }
    }

    /// # Safety
    /// The machine has AVX2 and FMA.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn wide(work: impl FnOnce()) {
        work();
    }

    /// # Safety
    /// The machine has AVX2 and FMA.
    pub unsafe fn run_wide<T: StripEpilogue, const PANELS: usize>(strip: ByteStrip<'_, T, PANELS>) {
        // SAFETY: by the caller's contract.
        unsafe {
            wide(
                #[inline(always)]
                || strip.make(Wide(())),
            );
        }
    }

    /// Only created where the machine has the features of [`vnni`], and used within.
    #[derive(Clone, Copy)]
    struct Vnni(());

    impl Bytes for Vnni {
        const FORM: Form = Form::Vnni;
        type Sums = __m512i;
        type Weights = __m512i;

        #[inline(always)]
        fn vectorize(self, work: impl FnOnce()) {
            // SAFETY: there is a `Vnni` only where the machine has the instructions.
            unsafe { vnni(work) }
        }

        #[inline(always)]
        fn start(self, sums: &[i32; PANEL]) -> __m512i {
            pulp::cast(*sums)
        }

        #[inline(always)]
        fn load(self, codes: &[u32; PANEL]) -> __m512i {
            pulp::cast(*codes)
        }

        #[inline(always)]
        fn multiply_add(self, sums: __m512i, a: u32, codes: __m512i) -> __m512i {
            // SAFETY: there is a `Vnni` only where the machine has the instructions.
            unsafe { _mm512_dpbusd_epi32(sums, _mm512_set1_epi32(a as i32), codes) }
        }

        #[inline(always)]
        fn finish(self, sums: __m512i) -> [i32; PANEL] {
            pulp::cast(sums)
        }
    }

    /// Only created where the machine has the features of [`wide`], and used within.
    #[derive(Clone, Copy)]
    struct Wide(());

    impl Bytes for Wide {
        const FORM: Form = Form::Wide;
        /// Two sums side by side for each of four columns.
        type Sums = [__m256i; 4];
        type Weights = [__m256i; 4];

        #[inline(always)]
        fn vectorize(self, work: impl FnOnce()) {
            // SAFETY: there is a `Wide` only where the machine has the instructions.
            unsafe { wide(work) }
        }

        #[inline(always)]
        fn start(self, sums: &[i32; PANEL]) -> Self::Sums {
            std::array::from_fn(|four| {
                pulp::cast(std::array::from_fn::<i32, 8, _>(|lane| {
                    if lane % 2 == 0 {
                        sums[4 * four + lane / 2]
                    } else {
                        0
                    }
                }))
            })
        }

        #[inline(always)]
        fn load(self, codes: &[u32; PANEL]) -> Self::Weights {
            let codes: [__m128i; 4] = pulp::cast(*codes);
            // SAFETY: there is a `Wide` only where the machine has the instructions.
            codes.map(|codes| unsafe { _mm256_cvtepi8_epi16(codes) })
        }

        #[inline(always)]
        fn multiply_add(self, sums: Self::Sums, a: u32, codes: Self::Weights) -> Self::Sums {
            // SAFETY: as above.
            let a = unsafe { _mm256_cvtepu8_epi16(_mm_set1_epi32(a as i32)) };
            // Two products of at most 255·127 each: far from 32 bits.
            // SAFETY: as above.
            std::array::from_fn(|four| unsafe {
                _mm256_add_epi32(sums[four], _mm256_madd_epi16(a, codes[four]))
            })
        }

        #[inline(always)]
        fn finish(self, sums: Self::Sums) -> [i32; PANEL] {
            let pairs: [[i32; 2]; PANEL] = pulp::cast(sums);
            pairs.map(|[even, odd]| even.wrapping_add(odd))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every form of this machine, rows and panels of every number, the greatest codes among them.
    #[test]
    fn every_form_gives_the_bits_of_plain_sums() {
        let words = 32;
        let byte = |seed: usize| {
            if seed.is_multiple_of(5) {
                127
            } else if seed.is_multiple_of(7) {
                -127
            } else {
                (seed * 31 % 255) as i32 - 127
            }
        };
        let word = |seed: usize| {
            (0..4).fold(0u32, |word, at| {
                word | u32::from(byte(seed * 4 + at) as u8) << (8 * at)
            })
        };
        for rows in 1..=27 {
            let a: Vec<u32> = (0..rows * words).map(|at| word(at * 3 + rows)).collect();
            let scales: Vec<f32> = (0..rows).map(|row| 0.5 + row as f32).collect();
            let panel = |seed: usize| {
                let codes: Vec<u32> = (0..words * PANEL).map(|at| word(at + seed)).collect();
                let mut panel = vec![0; HEAD];
                for column in 0..PANEL {
                    panel[column] = (0.25 * (1 + column) as f32).to_bits();
                    let sum: i32 = (0..words)
                        .map(|k| {
                            codes[k * PANEL + column]
                                .to_le_bytes()
                                .iter()
                                .map(|code| i32::from(*code as i8))
                                .sum::<i32>()
                        })
                        .sum();
                    panel[PANEL + column] = sum as u32;
                }
                panel.extend(codes);
                panel
            };
            let panels = [panel(1), panel(1000)];
            let wanted: Vec<f32> = (0..rows * 2 * PANEL)
                .map(|at| {
                    let (row, panel, column) =
                        (at / (2 * PANEL), &panels[at / PANEL % 2], at % PANEL);
                    let terms = (0..words).flat_map(|k| {
                        a[row * words + k]
                            .to_le_bytes()
                            .into_iter()
                            .zip(panel[HEAD + k * PANEL + column].to_le_bytes())
                    });
                    let sum: i32 = terms
                        .map(|(a, b)| i32::from(a as i8) * i32::from(b as i8))
                        .sum();
                    sum as f32 * (scales[row] * f32::from_bits(panel[column]))
                })
                .collect();
            for form in forms() {
                let mut packed = vec![0; a.len()];
                pack_for(form, &a, words, &mut packed);
                let mut strip = vec![f32::NAN; rows * 2 * PANEL];
                let b = [panels[0].as_slice(), &panels[1]];
                ByteStrip {
                    a: &packed,
                    words,
                    scales: &scales,
                    b,
                    ahead: [&[], &[]],
                    strip: &mut strip,
                    tail: (),
                }
                .run_as(form);
                assert_eq!(strip, wanted, "{form:?}, {rows} rows");
                let mut one = vec![f32::NAN; rows * PANEL];
                ByteStrip {
                    a: &packed,
                    words,
                    scales: &scales,
                    b: [&panels[1]],
                    ahead: [&[]],
                    strip: &mut one,
                    tail: (),
                }
                .run_as(form);
                let second: Vec<f32> = wanted
                    .chunks(2 * PANEL)
                    .flat_map(|row| &row[PANEL..])
                    .copied()
                    .collect();
                assert_eq!(one, second, "{form:?}, {rows} rows, one panel");
            }
        }
    }
    /// The longest rows of the greatest codes: sums with 128 added exceed 32 bits in between.
    #[test]
    fn the_greatest_sums_are_exact() {
        const WORDS: usize = crate::operation::product::quantize_rows::MAX_COLS / 4;
        let (a, codes) = (vec![0x7f7f_7f7f; WORDS], vec![0x7f7f_7f7f; WORDS * PANEL]);
        let sum = 127 * 4 * WORDS as u32;
        let panel: Vec<u32> = std::iter::repeat_n(1f32.to_bits(), PANEL)
            .chain(std::iter::repeat_n(sum, HEAD - PANEL))
            .chain(codes)
            .collect();
        for form in forms() {
            let (mut packed, mut strip) = (vec![0; WORDS], vec![f32::NAN; PANEL]);
            pack_for(form, &a, WORDS, &mut packed);
            ByteStrip {
                a: &packed,
                words: WORDS,
                scales: &[1.0],
                b: [panel.as_slice()],
                ahead: [&[]],
                strip: &mut strip,
                tail: (),
            }
            .run_as(form);
            assert_eq!(strip, [(127 * sum) as f32; PANEL], "{form:?}");
        }
    }
}
