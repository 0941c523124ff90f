//! Products of rows with one panel of 16 columns or two side by side, by tiles in registers: the
//! basis of products with packed weights and of attention. The variants tried and their rates are
//! in [`gemm_panels`](crate::operation::product::gemm_panels).

use pulp::{Simd, WithSimd};

use crate::kernel::native::{PrefetchHint, by_vectors, prefetch_unchecked, with_simd};
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::tiles::{MAX_TILE, tile_rows, tiles};

/// Rows of k of a panel of floats that a tile processes at a time: 24 KiB.
const K_SLICE: usize = 384;
/// Rows of k after which a tile prefetches what its epilogue accesses in one more row.
pub(crate) const PREFETCH_INTERVAL: usize = 24;
/// Maximum panels side by side.
pub(crate) const MAX_PANELS_PER_PASS: usize = 2;
/// Maximum panels side by side for a single row.
pub(crate) const MAX_PANELS_PER_ROW: usize = 8;

/// 16 floats aligned to a cache line: a vector of them never crosses two lines, which would take
/// two reads or writes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct CacheLine([f32; PANEL]);

// SAFETY: 16 floats, each valid as zeros.
unsafe impl bytemuck::Zeroable for CacheLine {}
// SAFETY: `repr(C)` over 16 floats, which fill its 64 bytes and its alignment: no padding, and
// every bit pattern is valid.
unsafe impl bytemuck::Pod for CacheLine {}

impl CacheLine {
    pub const ZERO: CacheLine = CacheLine([0.0; PANEL]);
}

/// The best number of panels side by side: two where a vector is a panel's row, so that an element
/// of the left operand that is loaded and broadcast serves two multiply-adds; shorter vectors split
/// a panel's row anyway.
pub(crate) fn panels_per_pass() -> usize {
    struct Panels;
    impl WithSimd for Panels {
        type Output = usize;
        fn with_simd<S: Simd>(self, _: S) -> usize {
            panels_per_pass_of::<S>()
        }
    }
    with_simd(Panels)
}

pub(crate) const fn panels_per_pass_of<S: Simd>() -> usize {
    if S::F32_LANES == PANEL {
        MAX_PANELS_PER_PASS
    } else {
        1
    }
}

/// The best number of panels for a single row: enough sums in registers that no multiply-add waits
/// for the one before.
pub(crate) fn panels_per_row() -> usize {
    struct Panels;
    impl WithSimd for Panels {
        type Output = usize;
        fn with_simd<S: Simd>(self, _: S) -> usize {
            if S::F32_LANES == PANEL {
                MAX_PANELS_PER_ROW
            } else {
                MAX_PANELS_PER_ROW / 2
            }
        }
    }
    with_simd(Panels)
}

/// The left operand of a strip: element (row, k).
pub(crate) trait Left: Copy {
    /// The rows of a tile. Few types: each is compiled in every form of the tile.
    type Tile: TileElements;
    /// Rows from one on, with all k from a first one on.
    fn tile(self, place: [usize; 2], height: usize) -> Self::Tile;
}

/// The elements of the left operand in a tile.
pub(crate) trait TileElements: Copy {
    /// Calls `f` k by k, from a first one on. The elements are still in memory, from where one
    /// instruction loads and broadcasts each.
    fn each<const HEIGHT: usize>(
        self,
        from: usize,
        depth: usize,
        f: impl FnMut(usize, [&f32; HEIGHT]),
    );
}

/// Rows in tiles as [`pack_tiles`](crate::operation::product::tiles::pack_tiles) makes them: in
/// each the elements of one k are side by side.
#[derive(Clone, Copy)]
pub(crate) struct Tiles<'a> {
    pub data: &'a [f32],
    pub k: usize,
}

impl<'a> Left for Tiles<'a> {
    type Tile = ColumnMajor<'a>;

    #[inline(always)]
    fn tile(self, [row, first]: [usize; 2], height: usize) -> ColumnMajor<'a> {
        ColumnMajor {
            data: &self.data[row * self.k + first * height..],
            stride: height,
        }
    }
}

/// Rows of k, with their stride in elements.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub data: &'a [f32],
    pub stride: usize,
}

impl Left for Rows<'_> {
    type Tile = Self;

    #[inline(always)]
    fn tile(self, [row, first]: [usize; 2], _: usize) -> Self {
        Self {
            data: &self.data[row * self.stride + first..],
            ..self
        }
    }
}

impl TileElements for Rows<'_> {
    #[inline(always)]
    fn each<const HEIGHT: usize>(
        self,
        first: usize,
        depth: usize,
        mut f: impl FnMut(usize, [&f32; HEIGHT]),
    ) {
        const BLOCK: usize = 16;
        // Through blocks of known size: the addresses of this many rows do not fit the registers.
        let mut block = [[0.0; BLOCK]; HEIGHT];
        for from in (0..depth).step_by(BLOCK) {
            let count = BLOCK.min(depth - from);
            for (row, block) in block.iter_mut().enumerate() {
                let row = &self.data[row * self.stride + first + from..];
                if count == BLOCK {
                    *block = *row
                        .first_chunk()
                        .expect("invariant: a row holds its elements");
                } else {
                    block[..count].copy_from_slice(&row[..count]);
                }
            }
            #[allow(
                clippy::needless_range_loop,
                reason = "k is a column of the block, not a row"
            )]
            for k in 0..count {
                f(from + k, std::array::from_fn(|row| &block[row][k]));
            }
        }
    }
}

/// Columns: the elements of one k side by side, with the stride from one k to the next.
#[derive(Clone, Copy)]
pub(crate) struct ColumnMajor<'a> {
    pub data: &'a [f32],
    pub stride: usize,
}

impl Left for ColumnMajor<'_> {
    type Tile = Self;

    #[inline(always)]
    fn tile(self, [row, first]: [usize; 2], _: usize) -> Self {
        Self {
            data: &self.data[first * self.stride + row..],
            ..self
        }
    }
}

impl TileElements for ColumnMajor<'_> {
    #[inline(always)]
    fn each<const HEIGHT: usize>(
        self,
        from: usize,
        depth: usize,
        mut f: impl FnMut(usize, [&f32; HEIGHT]),
    ) {
        let columns = &self.data[from * self.stride..];
        let last = depth.saturating_sub(1).checked_mul(self.stride);
        let end = last.and_then(|last| last.checked_add(HEIGHT));
        assert!(
            depth == 0 || end.is_some_and(|end| end <= columns.len()),
            "invariant: the operand holds its last tile"
        );
        // Not by for_each: the compiler may keep its loop as a separate function, which lacks this
        // one's instructions.
        for k in 0..depth {
            // SAFETY: the elements of the last k end within the operand, and those of k begin
            // `stride` before those of k + 1.
            let column: &[f32; HEIGHT] = unsafe {
                &*columns
                    .as_ptr()
                    .add(k * self.stride)
                    .cast::<[f32; HEIGHT]>()
            };
            f(k, column.each_ref());
        }
    }
}

/// Rows of 16 columns, of one k each.
pub(crate) trait PanelRows: Copy {
    /// How many.
    fn depth(self) -> usize;
    /// Some of them.
    fn part(self, from: usize, depth: usize) -> Self;
    /// One of them, in vectors.
    fn row<S: Simd, const VECTORS: usize>(self, k: usize) -> [S::f32s; VECTORS];
    /// Prefetches one that follows this one by some distance, where the processor does not do so by
    /// itself.
    #[inline(always)]
    fn prefetch_after(self, _: usize) {}
}

/// 16 floats as vectors.
#[inline(always)]
pub(crate) fn vectors<S: Simd, const VECTORS: usize>(row: &[f32; PANEL]) -> [S::f32s; VECTORS] {
    *bytemuck::cast_slice::<f32, S::f32s>(row)
        .first_chunk()
        .expect("invariant: so many vectors are a panel's row")
}

impl PanelRows for &[[f32; PANEL]] {
    #[inline(always)]
    fn depth(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn part(self, from: usize, depth: usize) -> Self {
        &self[from..][..depth]
    }

    #[inline(always)]
    fn row<S: Simd, const VECTORS: usize>(self, k: usize) -> [S::f32s; VECTORS] {
        vectors::<S, VECTORS>(&self[k])
    }
}

/// A panel of the right operand.
pub(crate) trait Right: Copy {
    /// Rows of k that all tiles process before the next.
    const SLICE: usize;
    /// Floats to which a slice is converted first where there are several tiles; 0 where it is
    /// floats already.
    const SCRATCH: usize;
    /// Its rows.
    type Rows: PanelRows;
    /// All rows.
    fn rows(self) -> Self::Rows;
    /// Converts some rows of k to floats.
    fn widen(self, from: usize, to: &mut [[f32; PANEL]]);
}

impl<'a> Right for &'a [f32] {
    const SLICE: usize = K_SLICE;
    const SCRATCH: usize = 0;
    type Rows = &'a [[f32; PANEL]];

    #[inline(always)]
    fn rows(self) -> Self::Rows {
        self.as_chunks().0
    }

    #[inline(always)]
    fn widen(self, from: usize, to: &mut [[f32; PANEL]]) {
        to.copy_from_slice(&self.rows()[from..][..to.len()]);
    }
}

/// A panel of floats with a row stride: columns of a wider array.
#[derive(Clone, Copy)]
pub(crate) struct StridedPanel<'a> {
    pub data: &'a [f32],
    pub stride: usize,
    pub count: usize,
}

impl PanelRows for StridedPanel<'_> {
    #[inline(always)]
    fn depth(self) -> usize {
        self.count
    }

    #[inline(always)]
    fn part(self, from: usize, depth: usize) -> Self {
        Self {
            data: &self.data[from * self.stride..],
            count: depth,
            ..self
        }
    }

    #[inline(always)]
    fn row<S: Simd, const VECTORS: usize>(self, k: usize) -> [S::f32s; VECTORS] {
        vectors::<S, VECTORS>(
            self.data[k * self.stride..]
                .first_chunk()
                .expect("invariant: rows hold the columns of a panel"),
        )
    }
}

impl Right for StridedPanel<'_> {
    const SLICE: usize = K_SLICE;
    const SCRATCH: usize = 0;
    type Rows = Self;

    #[inline(always)]
    fn rows(self) -> Self {
        self
    }

    #[inline(always)]
    fn widen(self, from: usize, to: &mut [[f32; PANEL]]) {
        for (to, row) in to
            .iter_mut()
            .zip(self.data[from * self.stride..].chunks(self.stride))
        {
            to.copy_from_slice(&row[..PANEL]);
        }
    }
}

/// The epilogue of a strip's tiles.
pub(crate) trait StripEpilogue {
    /// What it accesses, if that is to be prefetched. No method of this trait does so: the tile
    /// would be compiled for each epilogue.
    fn lines(&self) -> Option<EpilogueLines<'_>>;
    /// Finishes a tile whose sums are complete.
    fn end<const PANELS: usize>(&mut self, first: usize, tile: &mut [[[f32; PANEL]; PANELS]]);
}

/// What an epilogue accesses row by row.
#[derive(Clone, Copy)]
pub(crate) struct EpilogueLines<'a> {
    pub y: &'a [f32],
    pub residual: Option<&'a [f32]>,
    /// Columns of both, and the strip's first.
    pub n: usize,
    pub first: usize,
    /// What is needed after them, and how much of it is prefetched with each row.
    pub next: &'a [f32],
    pub next_of_row: usize,
}

impl EpilogueLines<'_> {
    /// Prefetches what the epilogue of a tile accesses in a row of this many columns.
    #[inline(always)]
    pub fn prefetch(&self, row: usize, columns: usize) {
        let at = row * self.n + self.first;
        for line in (0..columns).step_by(PANEL) {
            prefetch_unchecked(self.y, at + line, PrefetchHint::ToWrite);
            if let Some(residual) = self.residual {
                prefetch_unchecked(residual, at + line, PrefetchHint::Near);
            }
        }
        for line in (row * self.next_of_row..(row + 1) * self.next_of_row).step_by(PANEL) {
            prefetch_unchecked(self.next, line, PrefetchHint::Far);
        }
    }
}

/// Keeps the sums as the result.
impl StripEpilogue for () {
    #[inline(always)]
    fn lines(&self) -> Option<EpilogueLines<'_>> {
        None
    }

    #[inline(always)]
    fn end<const PANELS: usize>(&mut self, _: usize, _: &mut [[[f32; PANEL]; PANELS]]) {}
}

/// The product with panels side by side, `[rows, k]·[k, 16·PANELS]`, written or added to the
/// previous values.
pub(crate) struct Strip<'a, L: Left, R: Right, T: StripEpilogue, const PANELS: usize> {
    pub a: L,
    pub b: [R; PANELS],
    /// The panels of floats that are read next, as long as these or shorter.
    pub next_panels: [&'a [f32]; PANELS],
    /// Buffers for a slice of each panel that is not of floats.
    pub scratch: &'a mut [f32],
    pub strip: &'a mut [f32],
    pub onto: bool,
    pub tail: T,
}

impl<'a, L: Left, R: Right, const PANELS: usize> Strip<'a, L, R, (), PANELS> {
    /// For panels of floats, without panels after them.
    pub fn alone(a: L, b: [R; PANELS], strip: &'a mut [f32], onto: bool) -> Self {
        Self {
            a,
            b,
            next_panels: [&[]; PANELS],
            scratch: &mut [],
            strip,
            onto,
            tail: (),
        }
    }
}

impl<L: Left, R: Right, T: StripEpilogue, const PANELS: usize> WithSimd
    for Strip<'_, L, R, T, PANELS>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if const { PANELS > panels_per_pass_of::<S>() } {
            unreachable!("invariant: callers take at most `abreast` panels at once");
        }
        by_vectors!(S, self.make(simd))
    }
}

impl<L: Left, R: Right, T: StripEpilogue, const PANELS: usize> Strip<'_, L, R, T, PANELS> {
    /// Slices of k one after another, all tiles over each.
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(mut self, simd: S) {
        let rows = self.strip.len() / (PANELS * PANEL);
        let count = rows.div_ceil(tile_rows::<S>());
        let all = self.b[0].rows().depth();
        // A single tile reads rows in place, in any format.
        let slice = if count == 1 && R::SCRATCH > 0 {
            all.max(1)
        } else {
            R::SLICE
        };
        for from in (0..all).step_by(slice) {
            let depth = slice.min(all - from);
            if R::SCRATCH == 0 || count == 1 {
                let b = self.b.map(|b| b.rows().part(from, depth));
                self.slice::<S, R::Rows, VECTORS>(
                    simd,
                    b,
                    [from, depth, count],
                    from + depth == all,
                );
                continue;
            }
            let mut scratch = std::mem::take(&mut self.scratch);
            let mut rooms = scratch.chunks_exact_mut(R::SCRATCH);
            let b: [&[[f32; PANEL]]; PANELS] = self.b.map(|b| {
                let room = &mut rooms
                    .next()
                    .expect("invariant: there is room for every panel")
                    .as_chunks_mut()
                    .0[..depth];
                b.widen(from, room);
                &*room
            });
            self.slice::<S, _, VECTORS>(simd, b, [from, depth, count], from + depth == all);
            self.scratch = std::mem::take(&mut scratch);
        }
    }

    /// All tiles over a slice of k.
    #[inline(always)]
    fn slice<S: Simd, B: PanelRows, const VECTORS: usize>(
        &mut self,
        simd: S,
        b: [B; PANELS],
        [from, depth, count]: [usize; 3],
        is_last: bool,
    ) {
        let rows = self.strip.len() / (PANELS * PANEL);
        let onto = self.onto || from > 0;
        for (index, (first, height)) in tiles(rows, tile_rows::<S>()).enumerate() {
            // Every tile prefetches the same slice of the panels ahead, starting at its share and
            // continuing beyond it.
            let ahead = self.next_panels.map(|ahead| {
                ahead
                    .get((from + index * depth / count) * PANEL..)
                    .unwrap_or_default()
            });
            let y = &mut self.strip[first * PANELS * PANEL..][..height * PANELS * PANEL];
            let lines = self.tail.lines().filter(|_| is_last);
            tile_of::<S, _, _, PANELS, VECTORS>(
                simd,
                (height, first, self.a.tile([first, from], height)),
                (b, ahead),
                y,
                (onto, lines),
            );
            if is_last {
                self.tail
                    .end::<PANELS>(first, y.as_chunks_mut().0.as_chunks_mut().0);
            }
        }
    }
}

/// A tile of a height that is known at run time, at most [`tile_rows`].
#[inline(always)]
pub(crate) fn tile_of<
    S: Simd,
    A: TileElements,
    B: PanelRows,
    const PANELS: usize,
    const VECTORS: usize,
>(
    simd: S,
    (height, row, a): (usize, usize, A),
    b: ([B; PANELS], [&[f32]; PANELS]),
    y: &mut [f32],
    end: (bool, Option<EpilogueLines<'_>>),
) {
    let place = (a, row);
    // One test of a constant for each number of registers: heights that a form never has are not
    // compiled for it.
    if const { tile_rows::<S>() <= 2 } {
        return match height {
            1 => tile::<S, A, B, PANELS, VECTORS, 1>(simd, place, b, y, end),
            _ => tile::<S, A, B, PANELS, VECTORS, 2>(simd, place, b, y, end),
        };
    }
    if const { tile_rows::<S>() <= 6 } {
        return match height {
            1 => tile::<S, A, B, PANELS, VECTORS, 1>(simd, place, b, y, end),
            2 => tile::<S, A, B, PANELS, VECTORS, 2>(simd, place, b, y, end),
            3 => tile::<S, A, B, PANELS, VECTORS, 3>(simd, place, b, y, end),
            4 => tile::<S, A, B, PANELS, VECTORS, 4>(simd, place, b, y, end),
            5 => tile::<S, A, B, PANELS, VECTORS, 5>(simd, place, b, y, end),
            _ => tile::<S, A, B, PANELS, VECTORS, 6>(simd, place, b, y, end),
        };
    }
    match height {
        1 => tile::<S, A, B, PANELS, VECTORS, 1>(simd, place, b, y, end),
        2 => tile::<S, A, B, PANELS, VECTORS, 2>(simd, place, b, y, end),
        3 => tile::<S, A, B, PANELS, VECTORS, 3>(simd, place, b, y, end),
        4 => tile::<S, A, B, PANELS, VECTORS, 4>(simd, place, b, y, end),
        5 => tile::<S, A, B, PANELS, VECTORS, 5>(simd, place, b, y, end),
        6 => tile::<S, A, B, PANELS, VECTORS, 6>(simd, place, b, y, end),
        7 => tile::<S, A, B, PANELS, VECTORS, 7>(simd, place, b, y, end),
        8 => tile::<S, A, B, PANELS, VECTORS, 8>(simd, place, b, y, end),
        9 => tile::<S, A, B, PANELS, VECTORS, 9>(simd, place, b, y, end),
        10 => tile::<S, A, B, PANELS, VECTORS, 10>(simd, place, b, y, end),
        11 => tile::<S, A, B, PANELS, VECTORS, 11>(simd, place, b, y, end),
        _ => tile::<S, A, B, PANELS, VECTORS, MAX_TILE>(simd, place, b, y, end),
    }
}

/// `HEIGHT` rows of 16·PANELS columns in registers; `b` [depth, 16] each.
///
/// A function of its own: the strips of all kernels share it, and hundreds of forms of it were most
/// of what the compiler worked on when it was inlined.
#[inline(never)]
fn tile<
    S: Simd,
    A: TileElements,
    B: PanelRows,
    const PANELS: usize,
    const VECTORS: usize,
    const HEIGHT: usize,
>(
    simd: S,
    (a, row): (A, usize),
    (b, ahead): ([B; PANELS], [&[f32]; PANELS]),
    y: &mut [f32],
    (onto, lines): (bool, Option<EpilogueLines<'_>>),
) {
    simd.vectorize(
        #[inline(always)]
        || {
            let depth = b[0].depth();
            let y = bytemuck::cast_slice_mut::<_, S::f32s>(y)
                .as_chunks_mut::<VECTORS>()
                .0
                .as_chunks_mut::<PANELS>()
                .0;
            // With a height known at compile time: else the sums would be in memory.
            let y: &mut [_; HEIGHT] = y
                .first_chunk_mut()
                .expect("invariant: a tile is of its height");
            let mut sums = if onto {
                *y
            } else {
                [[[simd.splat_f32s(0.0); VECTORS]; PANELS]; HEIGHT]
            };
            // Where the second panel has none ahead it prefetches the first's, which is in cache.
            let (asks_ahead, first_ahead) = (!ahead[0].is_empty(), ahead[0]);
            let ahead = ahead.map(
                #[inline(always)]
                |ahead| if ahead.is_empty() { first_ahead } else { ahead },
            );
            let every = if lines.is_some() {
                PREFETCH_INTERVAL
            } else {
                depth.max(1)
            };
            for (part, from) in (0..depth).step_by(every).enumerate() {
                if let Some(lines) = &lines
                    && part < HEIGHT
                {
                    lines.prefetch(row + part, PANELS * PANEL);
                }
                let depth = every.min(depth - from);
                let b = b.map(
                    #[inline(always)]
                    |b| b.part(from, depth),
                );
                a.each::<HEIGHT>(
                    from,
                    depth,
                    #[inline(always)]
                    |k, a| {
                        if asks_ahead {
                            for ahead in ahead {
                                prefetch_unchecked(ahead, (from + k) * PANEL, PrefetchHint::Far);
                            }
                        }
                        let mut vectors = [[simd.splat_f32s(0.0); VECTORS]; PANELS];
                        for panel in 0..PANELS {
                            b[panel].prefetch_after(k);
                            vectors[panel] = b[panel].row::<S, VECTORS>(k);
                        }
                        for row in 0..HEIGHT {
                            let a = simd.splat_f32s(*a[row]);
                            for panel in 0..PANELS {
                                for vector in 0..VECTORS {
                                    sums[row][panel][vector] = simd.mul_add_f32s(
                                        a,
                                        vectors[panel][vector],
                                        sums[row][panel][vector],
                                    );
                                }
                            }
                        }
                    },
                );
            }
            *y = sums;
        },
    );
}

/// The product of one row with panels side by side, `[1, k]·[k, 16·PANELS]`: its elements have the
/// bits of a [`Strip`]'s.
pub(crate) struct RowStrip<'a, R: Right, T: StripEpilogue, const PANELS: usize> {
    pub a: &'a [f32],
    pub b: [R; PANELS],
    pub strip: &'a mut [f32],
    pub tail: T,
}

impl<R: Right, T: StripEpilogue, const PANELS: usize> WithSimd for RowStrip<'_, R, T, PANELS> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_vectors!(S, self.make(simd))
    }
}

impl<R: Right, T: StripEpilogue, const PANELS: usize> RowStrip<'_, R, T, PANELS> {
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(mut self, simd: S) {
        let b = self.b.map(|b| b.rows().part(0, self.a.len()));
        let mut sums = [[simd.splat_f32s(0.0); VECTORS]; PANELS];
        for (k, a) in self.a.iter().enumerate() {
            let a = simd.splat_f32s(*a);
            for panel in 0..PANELS {
                let b = b[panel].row::<S, VECTORS>(k);
                for vector in 0..VECTORS {
                    sums[panel][vector] = simd.mul_add_f32s(a, b[vector], sums[panel][vector]);
                }
            }
        }
        let y = bytemuck::cast_slice_mut::<_, S::f32s>(self.strip)
            .as_chunks_mut::<VECTORS>()
            .0;
        *y.first_chunk_mut()
            .expect("invariant: the strip holds these panels") = sums;
        self.tail
            .end::<PANELS>(0, self.strip.as_chunks_mut().0.as_chunks_mut().0);
    }
}
