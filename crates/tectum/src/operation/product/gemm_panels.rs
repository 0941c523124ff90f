//! Matrix products whose right operand is stored in panels: weights are packed once, not in every
//! product.
//!
//! A panel is 16 columns, row after row: what a tile of the product reads is one stream. The CPU
//! form holds a tile of as many rows as fit the registers and 16 columns in registers over slices
//! of k, the slice of the panel in L1 and the rows in L2; with vectors of 16 the columns of two
//! panels. An element is Σ over ascending k with fused multiply-adds, whatever the tile.
//!
//! [`PanelFormat`] is the storage format of weights. Halves are widened a slice at a time, exactly:
//! the product has the same bits as with the widened weights. Codes of 8 bits are multiplied as
//! integers by rows that were quantised too
//! ([`quantize_rows`](crate::operation::product::quantize_rows)), and scaled at the end.
//!
//! # Ladder of the CPU form
//!
//! Percent of the rate of multiply-adds in registers alone, one core with AVX-512, 128 rows by 384
//! by 1,152 (and 1,024 rows):
//!
//! | step | predicted | found |
//! |---|---|---|
//! | 12 rows by one panel, elements of `a` read in place | 92 %, by loads | 22 % to 41 % (31 %) |
//! | two panels side by side: an element loaded serves two multiply-adds | near 100 % | 36 % to 55 % (51 %) |
//! | rows packed in tiles: no addresses and bounds checks between a load and its multiply-adds | 85 % | 75 % (60 %) |
//! | the panels ahead prefetched; 384 instead of 192 rows of k a slice | 5 % more | 83 % (73 %) |
//! | a tile's epilogue immediately after its sums, its lines prefetched | more where the result leaves L2 | 83 % (80 %) |
//! | no tests in inner loops: epilogue lines prefetched a row every 24 k, panels ahead in order | 88 % | 87 % (87 %) |
//! | strips aligned to cache lines; rows packed by squares transposed in registers, those of the next task prefetched | 93 % | 90 % (93 %) |
//!
//! In the first step the height of the tallest tile was not known at compile time either, and its
//! sums went to memory at each k: that alone is a third of the rate. Of the rest to 100 %, packing
//! takes 2 to 4 % and the epilogues as much; epilogues compiled for each height make no difference.
//! Rejected because they brought no gain: 192 or 1,536 rows of k a slice, 256 rows or twice the
//! elements of `a` a task. For 8 rows the stream of the weights is the bound: 17 GB/s where two
//! cores read memory at 17 to 20.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk, simd, with_simd};
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel};
use crate::kernel_arguments;
use crate::operation::product::finish::{BiasActivation, StoreEpilogue, store, store_strip};
use crate::operation::product::gemm::{Activation, Epilogue, GemmEpilogue, TILE, body_with};
use crate::operation::product::gemm_i8;
use crate::operation::product::panel_format::{PANEL, PanelFormat};
use crate::operation::product::panel_halves::HalfPanel;
use crate::operation::product::quantize_rows::{MAX_COLS, padded};
use crate::operation::product::strip::{
    CacheLine, MAX_PANELS_PER_PASS, MAX_PANELS_PER_ROW, Right, RowStrip, Strip, StripEpilogue,
    Tiles, panels_per_pass, panels_per_row,
};
use crate::operation::product::strip_i8::{ByteStrip, pack_bytes};
use crate::operation::product::tiles::{MAX_TILE, pack_tiles};
use crate::operation::{built_in, groups};
use crate::plan::PlanBuilder;
use crate::view::{View, elements};

kernel_arguments! {
    /// `y[m, n] = activation(a[m, k]·b[k, n] + bias[n]) + residual[m, n]`, `b` in panels of floats
    /// or halves.
    pub(crate) struct GemmPanels {
        read a: f32, read b: T, write y: f32, optional bias: f32, optional residual: f32;
        m: usize, n: usize, k: usize, activation: u32
    }

    /// The same for panels of codes, by rows of codes with their scales; `words` of four codes
    /// along k.
    pub(crate) struct GemmPanelsInt8 {
        read a: u32, read b: u32, read scales: f32, write y: f32, optional bias: f32, optional residual: f32;
        m: usize, n: usize, words: usize, activation: u32
    }
}

/// The kernels over panels of f32, f16 and bf16, each with every epilogue.
static KERNELS: LazyLock<[[TypedKernel<GemmPanels>; 4]; 3]> = LazyLock::new(|| {
    [
        Epilogue::ALL.map(|epilogue| built_in(define_floats(epilogue), floats)),
        Epilogue::ALL
            .map(|epilogue| built_in(define_halves(PanelFormat::F16, epilogue), halves::<true>)),
        Epilogue::ALL
            .map(|epilogue| built_in(define_halves(PanelFormat::Bf16, epilogue), halves::<false>)),
    ]
});
static INT8: LazyLock<[TypedKernel<GemmPanelsInt8>; 4]> =
    LazyLock::new(|| Epilogue::ALL.map(|epilogue| built_in(define_int8(epilogue), int8)));

/// The product kernel of a format with an epilogue; none for panels of codes.
pub(crate) fn kernel(
    format: PanelFormat,
    epilogue: Epilogue,
) -> Option<&'static TypedKernel<GemmPanels>> {
    let index = match format {
        PanelFormat::F32 => 0,
        PanelFormat::F16 => 1,
        PanelFormat::Bf16 => 2,
        PanelFormat::Int8 => return None,
    };
    Some(&KERNELS[index][epilogue.index()])
}

/// The product kernel of panels of codes with an epilogue.
pub(crate) fn int8_kernel(epilogue: Epilogue) -> &'static TypedKernel<GemmPanelsInt8> {
    &INT8[epilogue.index()]
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    KERNELS
        .iter()
        .flatten()
        .map(|kernel| &**kernel)
        .chain(INT8.iter().map(|kernel| &**kernel))
        .cloned()
        .collect()
}

fn define_int8(epilogue: Epilogue) -> KernelBuilder<GemmPanelsInt8> {
    let builder =
        GemmPanelsInt8::define(name(PanelFormat::Int8, epilogue)).prelude(Prelude::Activation);
    let panel = "(col / 16u) * (64u + params.words * 16u)";
    let step = format!("bitcast<f32>(b[{panel} + col % 16u])");
    let result = format!(
        "tectum_activation(f32(values[part]) * (scales[row] * {step})PLUS_BIAS, params.activation)PLUS_RESIDUAL"
    );
    let body = gemm_i8::body_with(
        &format!("return b[{panel} + 64u + k * 16u + col % 16u];"),
        ["slot / 64u", "slot % 64u"],
        &result,
    );
    epilogue
        .apply(builder, &body, "col", "out")
        .flops(|GemmPanelsInt8 { m, n, words, .. }| 8.0 * m as f64 * n as f64 * words as f64)
        .loops(|GemmPanelsInt8 { m, n, words, .. }, groups| {
            crate::operation::product::loops_of_product([1, m, n], groups, words)
        })
}

fn define_floats(epilogue: Epilogue) -> KernelBuilder<GemmPanels, f32> {
    let value =
        "b[((first_col + b_n) / 16u * params.k + first_k + b_k) * 16u + (first_col + b_n) % 16u]";
    with_body(
        GemmPanels::define_on::<f32>(name(PanelFormat::F32, epilogue)).prelude(Prelude::Activation),
        epilogue,
        value,
    )
}

/// Over panels of halves, two columns in a word.
fn define_halves(format: PanelFormat, epilogue: Epilogue) -> KernelBuilder<GemmPanels> {
    let word = "b[((first_col + b_n) / 16u * ((params.k + 7u) / 8u * 8u) + first_k + b_k) * 8u + (first_col + b_n) % 16u / 2u]";
    let value =
        format!("bitcast<f32>(tectum_{format}_bits(({word} >> ((b_n % 2u) * 16u)) & 0xffffu))");
    with_body(
        GemmPanels::define(name(format, epilogue))
            .prelude(Prelude::Activation)
            .prelude(Prelude::Pack),
        epilogue,
        &value,
    )
}

fn name(format: PanelFormat, epilogue: Epilogue) -> String {
    format!("gemm_panels_{format}{}", epilogue.suffix())
}

/// The body with the expression of an element of `b`.
fn with_body<T: Element>(
    builder: KernelBuilder<GemmPanels, T>,
    epilogue: Epilogue,
    value: &str,
) -> KernelBuilder<GemmPanels, T> {
    let body = body_with(
        ["false", "false"],
        ["a[(first_row + a_m) * params.k + first_k + a_k]", value],
    );
    epilogue
        .apply(builder, &body, "col", "out")
        .flops(|GemmPanels { m, n, k, .. }| 2.0 * m as f64 * n as f64 * k as f64)
        .loops(|GemmPanels { m, n, k, .. }, groups| {
            crate::operation::product::loops_of_product([1, m, n], groups, k)
        })
}

fn int8(call: &NativeCall<'_>, arguments: GemmPanelsInt8<Slices<'_>>) {
    let GemmPanelsInt8 {
        a,
        b,
        scales,
        y,
        bias,
        residual,
        m,
        n,
        words,
        activation,
    } = arguments;
    let job = Job {
        m,
        n,
        depth: words,
        bias,
        residual,
        activation: Activation::from_code(activation),
    };
    let (a, b, scales) = (
        &a[..m * words],
        &b[..PanelFormat::Int8.words(4 * words, n)],
        &scales[..m],
    );
    gemm(
        call,
        &job,
        Codes {
            a,
            scales,
            b,
            words,
        },
        y,
    );
}

fn halves<const IS_F16: bool>(call: &NativeCall<'_>, arguments: GemmPanels<Slices<'_>>) {
    let GemmPanels {
        a,
        b,
        y,
        bias,
        residual,
        m,
        n,
        k,
        activation,
    } = arguments;
    let format = if IS_F16 {
        PanelFormat::F16
    } else {
        PanelFormat::Bf16
    };
    let job = Job {
        m,
        n,
        depth: k,
        bias,
        residual,
        activation: Activation::from_code(activation),
    };
    let (a, b) = (&a[..m * k], &b[..format.words(k, n)]);
    gemm(
        call,
        &job,
        Halves::<IS_F16> {
            a,
            b,
            k,
            panel: format.panel_words(k),
        },
        y,
    );
}

fn floats(call: &NativeCall<'_>, arguments: GemmPanels<Slices<'_, f32>>) {
    let GemmPanels {
        a,
        b,
        y,
        bias,
        residual,
        m,
        n,
        k,
        activation,
    } = arguments;
    let job = Job {
        m,
        n,
        depth: k,
        bias,
        residual,
        activation: Activation::from_code(activation),
    };
    gemm(
        call,
        &job,
        Floats {
            a: &a[..m * k],
            b: &b[..PanelFormat::F32.words(k, n)],
            k,
        },
        y,
    );
}

/// The arguments of a product; `depth` counts elements of a packed row.
struct Job<'a> {
    m: usize,
    n: usize,
    depth: usize,
    bias: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
    activation: Activation,
}

/// Rows and panels of a product, of some format.
trait Operands: Copy + Sync {
    /// The element type of packed rows.
    type Element: Element;
    /// Multiply-adds for each element of a row.
    const WORK: usize;
    /// Rows in place.
    fn rows(&self, rows: Range<usize>) -> &[Self::Element];
    /// Packs rows.
    fn pack(self, rows: Range<usize>, packed: &mut [Self::Element]);
    /// The product of packed rows with one panel or two, from a first one on.
    fn strip<T: StripEpilogue>(
        self,
        rows: Range<usize>,
        packed: &[Self::Element],
        panels: Range<usize>,
        strip: &mut [f32],
        tail: T,
    );
    /// The product of a single row with `PANELS` panels, from a first one on.
    fn row<T: StripEpilogue, const PANELS: usize>(
        self,
        packed: &[Self::Element],
        first: usize,
        strip: &mut [f32],
        tail: T,
    );
}

/// Those of this many existing rows of a width.
fn rows_of<T>(a: &[T], width: usize, rows: Range<usize>) -> &[T] {
    &a[a.len().min(rows.start * width)..a.len().min(rows.end * width)]
}

#[derive(Clone, Copy)]
struct Floats<'a> {
    a: &'a [f32],
    b: &'a [f32],
    k: usize,
}

#[derive(Clone, Copy)]
struct Halves<'a, const IS_F16: bool> {
    a: &'a [f32],
    b: &'a [u32],
    k: usize,
    /// Words of a panel.
    panel: usize,
}

#[derive(Clone, Copy)]
struct Codes<'a> {
    a: &'a [u32],
    scales: &'a [f32],
    b: &'a [u32],
    words: usize,
}

impl Operands for Floats<'_> {
    type Element = f32;
    const WORK: usize = 1;

    fn rows(&self, rows: Range<usize>) -> &[f32] {
        rows_of(self.a, self.k, rows)
    }

    fn pack(self, rows: Range<usize>, packed: &mut [f32]) {
        pack_tiles(self.rows(rows), self.k, packed);
    }

    fn strip<T: StripEpilogue>(
        self,
        _: Range<usize>,
        packed: &[f32],
        panels: Range<usize>,
        strip: &mut [f32],
        tail: T,
    ) {
        let (a, scratch) = (
            Tiles {
                data: packed,
                k: self.k,
            },
            &mut [],
        );
        let [b, second, third, fourth] = around(self.b, panels.start, self.k * PANEL);
        match panels.len() {
            1 => with_simd(Strip {
                a,
                b: [b],
                next_panels: [second],
                scratch,
                strip,
                onto: false,
                tail,
            }),
            _ => with_simd(Strip {
                a,
                b: [b, second],
                next_panels: [third, fourth],
                scratch,
                strip,
                onto: false,
                tail,
            }),
        }
    }

    fn row<T: StripEpilogue, const PANELS: usize>(
        self,
        a: &[f32],
        first: usize,
        strip: &mut [f32],
        tail: T,
    ) {
        let panel = self.k * PANEL;
        with_simd(RowStrip {
            a,
            b: std::array::from_fn::<_, PANELS, _>(|index| {
                &self.b[(first + index) * panel..][..panel]
            }),
            strip,
            tail,
        });
    }
}

/// Two panels and the two after them, each empty if missing.
fn around<T>(b: &[T], first: usize, panel: usize) -> [&[T]; 4] {
    std::array::from_fn(|index| {
        b.get((first + index) * panel..(first + index + 1) * panel)
            .unwrap_or_default()
    })
}

impl<const IS_F16: bool> Operands for Halves<'_, IS_F16> {
    type Element = f32;
    const WORK: usize = 1;

    fn rows(&self, rows: Range<usize>) -> &[f32] {
        rows_of(self.a, self.k, rows)
    }

    fn pack(self, rows: Range<usize>, packed: &mut [f32]) {
        pack_tiles(self.rows(rows), self.k, packed);
    }

    fn strip<T: StripEpilogue>(
        self,
        _: Range<usize>,
        packed: &[f32],
        panels: Range<usize>,
        strip: &mut [f32],
        tail: T,
    ) {
        let a = Tiles {
            data: packed,
            k: self.k,
        };
        let panel = |index: usize| {
            HalfPanel::<IS_F16>::new(
                &self.b[index * self.panel..],
                self.k,
                panels.len() * self.panel,
            )
        };
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(
                MAX_PANELS_PER_PASS * HalfPanel::<IS_F16>::SCRATCH / PANEL,
                CacheLine::ZERO,
            );
            let scratch = bytemuck::cast_slice_mut(scratch);
            match panels.len() {
                1 => with_simd(Strip {
                    a,
                    b: [panel(panels.start)],
                    next_panels: [&[]],
                    scratch,
                    strip,
                    onto: false,
                    tail,
                }),
                _ => with_simd(Strip {
                    a,
                    b: [panel(panels.start), panel(panels.start + 1)],
                    next_panels: [&[]; 2],
                    scratch,
                    strip,
                    onto: false,
                    tail,
                }),
            }
        });
    }

    fn row<T: StripEpilogue, const PANELS: usize>(
        self,
        a: &[f32],
        first: usize,
        strip: &mut [f32],
        tail: T,
    ) {
        let panel = |index: usize| {
            HalfPanel::<IS_F16>::new(
                &self.b[(first + index) * self.panel..],
                self.k,
                PANELS * self.panel,
            )
        };
        with_simd(RowStrip {
            a,
            b: std::array::from_fn::<_, PANELS, _>(panel),
            strip,
            tail,
        });
    }
}

impl Operands for Codes<'_> {
    type Element = u32;
    const WORK: usize = 2;

    fn rows(&self, rows: Range<usize>) -> &[u32] {
        rows_of(self.a, self.words, rows)
    }

    fn pack(self, rows: Range<usize>, packed: &mut [u32]) {
        pack_bytes(self.rows(rows), self.words, packed);
    }

    fn strip<T: StripEpilogue>(
        self,
        rows: Range<usize>,
        packed: &[u32],
        panels: Range<usize>,
        strip: &mut [f32],
        tail: T,
    ) {
        let [b, second, third, fourth] = around(
            self.b,
            panels.start,
            PanelFormat::Int8.panel_words(4 * self.words),
        );
        let (a, words, scales) = (packed, self.words, &self.scales[rows]);
        match panels.len() {
            1 => ByteStrip {
                a,
                words,
                scales,
                b: [b],
                ahead: [second],
                strip,
                tail,
            }
            .run(),
            _ => ByteStrip {
                a,
                words,
                scales,
                b: [b, second],
                ahead: [third, fourth],
                strip,
                tail,
            }
            .run(),
        }
    }

    fn row<T: StripEpilogue, const PANELS: usize>(
        self,
        a: &[u32],
        first: usize,
        strip: &mut [f32],
        tail: T,
    ) {
        let panel = PanelFormat::Int8.panel_words(4 * self.words);
        let b = std::array::from_fn(|index| &self.b[(first + index) * panel..][..panel]);
        // So many streams are prefetched by the processor.
        ByteStrip::<T, PANELS> {
            a,
            words: self.words,
            scales: self.scales,
            b,
            ahead: [&[]; PANELS],
            strip,
            tail,
        }
        .run();
    }
}

/// Elements of `a` that a task processes for each panel: what fits an L2 of 512 KiB together with
/// the panel.
const ROWS_ELEMENTS: usize = 96 << 10;
/// Maximum rows of a task: a strip of them stays in L1 with the slice of its panel.
const MAX_ROWS: usize = 128;

thread_local! {
    /// Packed rows and strips of a product, kept from launch to launch.
    static PACK_BUFFER: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
    /// Slices of panels, widened.
    static SCRATCH: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
}

fn gemm<O: Operands>(call: &NativeCall<'_>, job: &Job<'_>, operands: O, y: &mut [f32]) {
    let &Job {
        m,
        n,
        depth,
        bias,
        residual,
        activation,
    } = job;
    let (y, panels) = (&mut y[..m * n], n.div_ceil(PANEL));
    // A multiply-add is a sixteenth of a streamed element; for few rows the stream of the weights
    // dominates, from a cache half of that from memory: waking a thread would take longer than what
    // it saves.
    let threads = call.threads_for((m * n * depth * O::WORK / 16).max(n * depth / 2));
    if m == 1 {
        return row(job, operands, y, threads);
    }
    let most = MAX_ROWS.min((ROWS_ELEMENTS / depth).max(MAX_TILE));
    let group = panels_per_pass();
    if threads == 1 || m >= threads * most.min(48) {
        // Tasks of equal numbers of rows, each over all panels.
        let height = m.div_ceil(m.div_ceil(most).next_multiple_of(threads));
        return for_each_chunk(y, height * n, threads, |task, y| {
            let rows = y.len() / n;
            let residual = residual.map(|residual| &residual[task * height * n..][..rows * n]);
            let mut kept = PACK_BUFFER.take();
            kept.resize(
                kept.len().max((rows * depth).div_ceil(PANEL)),
                CacheLine::ZERO,
            );
            let packed: &mut [O::Element] =
                &mut bytemuck::cast_slice_mut(&mut kept)[..rows * depth];
            let rows = task * height..task * height + rows;
            operands.pack(rows.clone(), packed);
            let mut strip = [CacheLine::ZERO; MAX_ROWS * MAX_PANELS_PER_PASS];
            // The rows that this thread most likely packs next, in equal parts.
            let next: &[f32] = bytemuck::cast_slice(operands.rows(rows.end..rows.end + height));
            let share = next.len().div_ceil(panels.div_ceil(group));
            for first in (0..panels).step_by(group) {
                let next = next
                    .chunks(share.max(1))
                    .nth(first / group)
                    .unwrap_or_default();
                let abreast = first..panels.min(first + group);
                let finish = BiasActivation {
                    bias,
                    activation,
                    first: first * PANEL,
                };
                let strip = bytemuck::cast_slice_mut(&mut strip[..rows.len() * abreast.len()]);
                let tail = StoreEpilogue {
                    finish,
                    y,
                    n,
                    residual,
                    next,
                    next_of_row: next.len().div_ceil(rows.len()),
                };
                operands.strip(rows.clone(), packed, abreast, strip, tail);
            }
            PACK_BUFFER.set(kept);
        });
    }
    // Few rows: tasks of some panels, each over all rows. The buffers are moved out, not borrowed:
    // while this thread waits for others it may receive another product.
    let mut kept = PACK_BUFFER.take();
    kept.resize(
        kept.len().max(panels * m + (m * depth).div_ceil(PANEL)),
        CacheLine::ZERO,
    );
    let (strips, packed) = kept.split_at_mut(panels * m);
    let (strips, packed): (&mut [f32], &mut [O::Element]) = (
        bytemuck::cast_slice_mut(strips),
        &mut bytemuck::cast_slice_mut(packed)[..m * depth],
    );
    operands.pack(0..m, packed);
    let share = panels.div_ceil(2 * threads).next_multiple_of(group);
    for_each_chunk(strips, share * PANEL * m, threads, |task, strips| {
        for (index, strip) in strips.chunks_mut(group * PANEL * m).enumerate() {
            let (first, count) = (task * share + index * group, strip.len() / m / PANEL);
            let finish = BiasActivation {
                bias,
                activation,
                first: first * PANEL,
            };
            operands.strip(0..m, packed, first..first + count, strip, finish);
        }
    });
    simd(
        #[inline(always)]
        || {
            for (index, strip) in strips.chunks(group * PANEL * m).enumerate() {
                let first = index * group * PANEL;
                match strip.len() / m {
                    PANEL => store_strip::<1>(strip, first, y, n, residual),
                    _ => store_strip::<MAX_PANELS_PER_PASS>(strip, first, y, n, residual),
                }
            }
        },
    );
    PACK_BUFFER.set(kept);
}

/// The product of a single row: tasks of some panels, as many at a time as hide the latency of a
/// multiply-add.
fn row<O: Operands>(job: &Job<'_>, operands: O, y: &mut [f32], threads: usize) {
    let &Job {
        n,
        depth,
        bias,
        residual,
        activation,
        ..
    } = job;
    let mut kept = PACK_BUFFER.take();
    kept.resize(kept.len().max(depth.div_ceil(PANEL)), CacheLine::ZERO);
    let packed: &mut [O::Element] = &mut bytemuck::cast_slice_mut(&mut kept)[..depth];
    operands.pack(0..1, packed);
    let (panels, group) = (n.div_ceil(PANEL), panels_per_row());
    let share = if threads == 1 {
        panels
    } else {
        panels.div_ceil(2 * threads).next_multiple_of(group)
    };
    for_each_chunk(y, share * PANEL, threads, |task, y| {
        let from = task * share;
        let (end, mut first) = (from + y.len().div_ceil(PANEL), from);
        while first < end {
            let finish = BiasActivation {
                bias,
                activation,
                first: first * PANEL,
            };
            let mut strip = [CacheLine::ZERO; MAX_PANELS_PER_ROW];
            let strip: &mut [f32] = bytemuck::cast_slice_mut(&mut strip);
            let y = &mut y[(first - from) * PANEL..];
            let residual = residual.map(|residual| &residual[first * PANEL..n]);
            macro_rules! side_by_side {
                ($panels:literal) => {{
                    operands.row::<_, $panels>(
                        packed,
                        first,
                        &mut strip[..$panels * PANEL],
                        finish,
                    );
                    store::<$panels>(
                        strip
                            .as_chunks()
                            .0
                            .first_chunk()
                            .expect("invariant: the strip holds as many"),
                        0..y.len(),
                        y,
                        residual,
                    );
                    $panels
                }};
            }
            first += match (end - first).min(group) {
                8.. => side_by_side!(8),
                4.. => side_by_side!(4),
                2.. => side_by_side!(2),
                _ => side_by_side!(1),
            };
        }
    });
    PACK_BUFFER.set(kept);
}

impl PlanBuilder {
    /// Records `y = activation(a·b + bias) + residual` for a `b` packed by [`PanelFormat::pack`].
    ///
    /// # Shapes
    /// `a` [m, k] row-major, `b` [k, n] in panels, of f32 or of u32 where these are of words, bias
    /// \[n\], residual and `y` [m, n].
    /// # Numerics
    /// f32, accumulation included, with weights of fewer bits widened; for [`PanelFormat::Int8`]
    /// exact sums of products of codes, with the rows of `a` quantised first
    /// ([`quantize_rows`](PlanBuilder::quantize_rows)). Same device, same bits.
    /// # Errors
    /// As [`PlanBuilder::gemm`]; `Invalid` if codes are multiplied over more than 2¹⁷ elements,
    /// whose sums may overflow 32 bits.
    /// # Cost
    /// One launch, two with codes.
    pub fn gemm_panels(
        &mut self,
        a: View,
        (b, format): (View, PanelFormat),
        y: View,
        [m, k, n]: [usize; 3],
        tail: GemmEpilogue,
    ) -> Result<()> {
        let tail_fits = tail.bias.is_none_or(|bias| bias.len() == n)
            && tail.residual.is_none_or(|residual| residual.fills(&[m, n]));
        // The last panel is padded to a whole one.
        let is_counted = [m, n.saturating_add(1024)]
            .iter()
            .all(|&size| elements(&[k.saturating_add(1024), size]).is_some());
        if !is_counted
            || !a.fills(&[m, k])
            || b.len() != format.words(k, n)
            || !y.fills(&[m, n])
            || !tail_fits
            || k == 0
        {
            return Err(Error::invalid(format!(
                "gemm_panels: a {}, b {}, bias {:?}, residual {:?}, y {} elements for [{m}, {k}] and [{k}, {n}] in panels of {format}",
                a.len(),
                b.len(),
                tail.bias.map(|view| view.len()),
                tail.residual.map(|view| view.len()),
                y.len()
            )));
        }
        if format == PanelFormat::Int8 && k > MAX_COLS {
            return Err(Error::invalid(format!(
                "gemm_panels: k = {k}; sums of products of codes are exact up to k = {MAX_COLS}"
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        self.whole(|plan| plan.panels(a, (b, format), y, [m, k, n], tail))
    }

    /// The launches of a product with panels; the caller has checked all arguments.
    fn panels(
        &mut self,
        a: View,
        (b, format): (View, PanelFormat),
        y: View,
        [m, k, n]: [usize; 3],
        tail: GemmEpilogue,
    ) -> Result<()> {
        let (
            GemmEpilogue {
                bias,
                residual,
                activation,
            },
            groups,
        ) = (tail, groups(m.div_ceil(TILE) * n.div_ceil(TILE)));
        let activation = activation as u32;
        if let Some(kernel) = kernel(format, tail.epilogue()) {
            return self.launch(
                kernel,
                GemmPanels {
                    a,
                    b,
                    y,
                    bias,
                    residual,
                    m,
                    n,
                    k,
                    activation,
                },
                groups,
            );
        }
        let words = padded(k) / 4;
        let (codes, scales) = (self.temp(DType::U32, m * words), self.temp(DType::F32, m));
        self.quantize_rows(a, codes, scales, k)?;
        let arguments = GemmPanelsInt8 {
            a: codes,
            b,
            scales,
            y,
            bias,
            residual,
            m,
            n,
            words,
            activation,
        };
        self.launch(int8_kernel(tail.epilogue()), arguments, groups)
    }
}
