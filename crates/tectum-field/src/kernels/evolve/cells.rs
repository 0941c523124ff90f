//! The cells of a row. A cell has few channels, so work per cell is minimal: one index walks all
//! columns.

use std::slice::Chunks;

use tectum::kernel::lanes::{
    Block, Floats, LaneReduction, Lanes, ReducingLanes, Work, run_8_lanes, run_16_lanes,
};
use tectum::kernel::native::prefetch_line;

use super::super::super::draw::{MEAN, NOISE_UNIT, STRIDE, hash_mix, start};
use super::super::super::layout::*;
use super::super::super::shape::DYNAMICS;
use super::super::super::storage::stochastic_round_bf16;
use super::super::number;
use super::coefficients::Coefficients;
use super::{MAX_Z, Step, ZEROS, normalized_coordinate};

/// Calls a function with the count of channels, a multiple of 32 from 32 to 256, as a compile-time
/// constant, so that loops over the few vectors of a cell are unrolled.
macro_rules! with_channels {
    ($channels:expr, |$known:ident| $call:expr) => {
        with_channels!($channels, |$known| $call, 32 64 96 128 160 192 224 else 256)
    };
    ($channels:expr, |$known:ident| $call:expr, $($number:literal)* else $last:literal) => {
        match $channels {
            $($number => { const $known: usize = $number; $call })*
            _ => { const $known: usize = $last; $call }
        }
    };
}

/// Sums of three columns along X at the row's own Y and on either side, each [Z][content].
#[derive(Clone)]
pub struct ColumnSums {
    row: Option<[usize; 2]>,
    sums: [Vec<f32>; 3],
}

impl ColumnSums {
    pub fn new(length: usize) -> Self {
        Self {
            row: None,
            sums: [0; 3].map(|_| vec![0.0; length]),
        }
    }
}

/// A row in progress, and data that all its cells share.
pub struct Row<'a> {
    step: &'a Step<'a>,
    place: [usize; 2],
    /// The nine columns of cells around it: X varies slowest.
    columns: [&'a [f32]; 9],
    scale: f32,
    noise: f32,
    key: [u32; 2],
    /// The first region of the row.
    regions: usize,
}

impl<'a> Row<'a> {
    pub fn new(step: &'a Step<'a>, px: usize, py: usize, columns: [&'a [f32]; 9]) -> Self {
        let live = step.live;
        Self {
            step,
            place: [px, py],
            columns,
            scale: step.scale(),
            noise: step.scale()
                * step.control[CONTROL_DRIVE]
                * number(live, LIVE_NOISE)
                * NOISE_UNIT,
            key: [live[LIVE_KEY], live[LIVE_KEY + 1]],
            regions: step.region([px, py, 0]),
        }
    }

    /// The row's own column.
    pub fn column(&self) -> &'a [f32] {
        self.columns[4]
    }

    /// The hashes of the evolving channels as bits, \[Z\]\[evolving\]. The words of `ahead` are
    /// prefetched, a part of them with each cell.
    #[inline(always)]
    pub fn draw(&self, hashes: &mut [f32], ahead: &[u32]) {
        with_channels!(self.step.channels, |CHANNELS| self
            .draw_cells::<CHANNELS>(hashes, ahead));
    }

    #[inline(always)]
    fn draw_cells<const CHANNELS: usize>(&self, hashes: &mut [f32], ahead: &[u32]) {
        let (mut ahead, each) = lines(ahead, self.step.cells[2]);
        let first = start(self.first(), self.key);
        for (z, hashes) in hashes.chunks_exact_mut(CHANNELS - DYNAMICS).enumerate() {
            prefetch(&mut ahead, each);
            let first = first.wrapping_add(STRIDE.wrapping_mul((z * CHANNELS) as u32));
            for (i, hash) in hashes.iter_mut().enumerate() {
                *hash = f32::from_bits(hash_mix(
                    first.wrapping_add(STRIDE.wrapping_mul(i as u32)),
                    self.key,
                ));
            }
        }
    }

    /// The index of the row's first element.
    #[inline(always)]
    fn first(&self) -> u32 {
        let Step {
            cells, channels, ..
        } = self.step;
        ((self.place[0] * cells[1] + self.place[1]) * cells[2] * channels) as u32
    }

    /// Scales the saturated field and rounds it to the storage format, \[Z\]\[evolving\].
    #[inline(always)]
    pub fn stochastic_round(&self, field: &mut [f32]) {
        let (channels, saturation) = (self.step.channels, number(self.step.live, LIVE_SATURATION));
        for (z, field) in field.chunks_exact_mut(channels - DYNAMICS).enumerate() {
            let first = self.first().wrapping_add((z * channels) as u32);
            for (i, v) in field.iter_mut().enumerate() {
                *v = f32::from_bits(stochastic_round_bf16(
                    saturation * *v,
                    first.wrapping_add(i as u32),
                    self.key,
                ));
            }
        }
    }

    /// Packs new values: evolving channels are already rounded, so that rounding does not change
    /// them; the cells' rules are rounded here.
    #[inline(always)]
    pub fn pack_bf16(&self, values: &[f32], words: &mut [u32]) {
        let first = self.first();
        for (i, (word, pair)) in words.iter_mut().zip(values.as_chunks::<2>().0).enumerate() {
            let element = first.wrapping_add(2 * i as u32);
            let [low, high] = [
                stochastic_round_bf16(pair[0], element, self.key),
                stochastic_round_bf16(pair[1], element.wrapping_add(1), self.key),
            ];
            *word = low >> 16 | high;
        }
    }

    /// The region of a cell.
    #[inline(always)]
    fn region(&self, z: usize) -> usize {
        self.regions + self.step.parts[2][z]
    }

    /// A cell of the row's own column, at most one step outside.
    #[inline(always)]
    fn end(&self, z: isize) -> &'a [f32] {
        let channels = self.step.channels;
        self.step
            .boundary
            .place(z, self.step.cells[2])
            .map_or(&ZEROS[..channels], |z| {
                &self.columns[4][z * channels..][..channels]
            })
    }

    /// Adds the terms of few cells and channels: imprint, echo, strategic patterns.
    pub fn extras(&self, drive: &mut [f32]) {
        let Step {
            control,
            content,
            channels,
            cells,
            along_z,
            ..
        } = *self.step;
        let (evolving, scale) = (channels - DYNAMICS, self.scale);
        let away = |axis: usize, place: usize| (place as f32 - control[CONTROL_PLACE + axis]).abs();
        let aside = [0, 1].map(|axis| away(axis, self.place[axis]));
        let is_near = aside.iter().all(|aside| *aside < 2.5);
        let (forward, turn) = (
            control[CONTROL_ECHO_FORWARD],
            control[CONTROL_ECHO_TURN] * normalized_coordinate(self.place[1], cells[1]),
        );
        let weight = control[CONTROL_STRATEGIC_WEIGHT];
        for (z, drive) in drive.chunks_exact_mut(evolving).enumerate() {
            if is_near && away(2, z) < 2.5 {
                let intensity = control[CONTROL_INTENSITY]
                    * 0.8f32.powi((aside[0] + aside[1] + away(2, z)).round() as i32);
                for (drive, pattern) in drive[..content].iter_mut().zip(&control[CONTROL_PATTERN..])
                {
                    *drive += scale * intensity * pattern;
                }
            }
            let [.., before, last] = drive else { return };
            *before += scale * (forward * along_z[z] + turn);
            *last += scale * control[CONTROL_ECHO_MEAN];
            if weight != 0.0 {
                for (drive, pattern) in drive[content..]
                    .iter_mut()
                    .zip(&control[CONTROL_STRATEGIC..])
                {
                    *drive = (1.0 - weight) * *drive + weight * scale * pattern;
                }
            }
        }
    }
}

/// Sums over the columns at each cell of the row and one beyond either end: three columns along X
/// at a time, of which the next row along Y uses two again.
pub struct NeighbourSums<'a, 'b> {
    pub row: &'b Row<'a>,
    pub column_sums: &'b mut ColumnSums,
    /// \[Z + 2\]\[content\].
    pub neighbour_sums: &'b mut [f32],
}

impl Work for NeighbourSums<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self {
            row,
            column_sums,
            neighbour_sums,
        } = self;
        let (
            &Step {
                content,
                channels,
                cells: [_, _, nz],
                ..
            },
            [px, py],
        ) = (row.step, row.place);
        let follows = py > 0 && column_sums.row == Some([px, py - 1]);
        column_sums.row = Some(row.place);
        if follows {
            column_sums.sums.rotate_left(1);
        }
        for side in if follows { 2 } else { 0 }..3 {
            let [west, here, east] = [
                row.columns[side],
                row.columns[3 + side],
                row.columns[6 + side],
            ];
            let cells = west
                .chunks_exact(channels)
                .zip(here.chunks_exact(channels))
                .zip(east.chunks_exact(channels));
            for (sums, ((west, here), east)) in
                column_sums.sums[side].chunks_exact_mut(content).zip(cells)
            {
                add3(
                    lanes,
                    sums,
                    [&west[..content], &here[..content], &east[..content]],
                );
            }
        }
        let [south, middle, north] = &column_sums.sums;
        add3(
            lanes,
            &mut neighbour_sums[content..(nz + 1) * content],
            [south, middle, north],
        );
        for (end, outside) in [(0, -1), (nz + 1, nz as isize)] {
            match row.step.boundary.place(outside, nz) {
                Some(z) => {
                    neighbour_sums.copy_within((z + 1) * content..(z + 2) * content, end * content)
                }
                None => neighbour_sums[end * content..][..content].fill(0.0),
            }
        }
    }
}

/// (a + b) + c for each element of `sums`.
#[inline(always)]
fn add3<L: Lanes>(lanes: L, sums: &mut [f32], [a, b, c]: [&[f32]; 3]) {
    let terms = L::Block::as_blocks(a)
        .iter()
        .zip(L::Block::as_blocks(b))
        .zip(L::Block::as_blocks(c));
    L::Block::cut_mut(sums).iter_mut().zip(terms).for_each(
        #[inline(always)]
        |(sum, ((a, b), c))| *sum = sum3(lanes, a, b, c).store(),
    );
}

/// (a + b) + c.
#[inline(always)]
fn sum3<L: Lanes>(lanes: L, a: &L::Block, b: &L::Block, c: &L::Block) -> Floats<L> {
    (Floats::load(lanes, a) + Floats::load(lanes, b)) + Floats::load(lanes, c)
}

/// Words cut into cache lines, and how many of them each cell of a row prefetches.
#[inline(always)]
fn lines(words: &[u32], cells: usize) -> (Chunks<'_, u32>, usize) {
    let lines = words.chunks(16);
    let each = lines.len().div_ceil(cells);
    (lines, each)
}

/// Prefetches the next cache lines.
#[inline(always)]
fn prefetch(lines: &mut Chunks<'_, u32>, count: usize) {
    lines.take(count).for_each(
        #[inline(always)]
        |line| prefetch_line(line, 0),
    );
}

/// The argument of the saturation for the evolving channels, without the terms of few cells.
pub struct Drive<'a, 'b> {
    pub row: &'b Row<'a>,
    pub cells: &'b Coefficients,
    pub neighbour_sums: &'b [f32],
    /// The hashes as bits, replaced by the argument, \[Z\]\[evolving\].
    pub drive: &'b mut [f32],
    /// Words to prefetch, a part of them with each cell.
    pub ahead: &'b [u32],
}

/// A cell with its six neighbours, and its diffusion along each axis.
struct FaceNeighbours<'a, L: Lanes, const CHANNELS: usize> {
    lanes: L,
    here: &'a [f32; CHANNELS],
    /// The cells on either side along each axis.
    faces: [[&'a [f32; CHANNELS]; 2]; 3],
    diffusion: [Floats<L>; 3],
    minus_two: Floats<L>,
}

impl<L: Lanes, const CHANNELS: usize> FaceNeighbours<'_, L, CHANNELS> {
    /// Some channels, and Σ D Δx of them.
    #[inline(always)]
    fn spread(&self, i: usize) -> (Floats<L>, Floats<L>) {
        let here = self.block(self.here, i);
        let [dx, dy, dz] = self.diffusion;
        let along_x = dx * self.second_difference(0, i, here);
        let along_y = dy.mul_add(self.second_difference(1, i, here), along_x);
        (
            here,
            dz.mul_add(self.second_difference(2, i, here), along_y),
        )
    }

    /// Δx along an axis.
    #[inline(always)]
    fn second_difference(&self, axis: usize, i: usize, here: Floats<L>) -> Floats<L> {
        let [before, after] = self.faces[axis];
        here.mul_add(self.minus_two, self.block(before, i) + self.block(after, i))
    }

    #[inline(always)]
    fn block(&self, cell: &[f32; CHANNELS], i: usize) -> Floats<L> {
        Floats::load(self.lanes, &L::Block::as_blocks(cell)[i])
    }
}

impl Work for Drive<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        with_channels!(self.row.step.channels, |CHANNELS| self
            .run_cells::<L, CHANNELS>(lanes));
    }
}

impl Drive<'_, '_> {
    #[inline(always)]
    fn run_cells<L: Lanes, const CHANNELS: usize>(self, lanes: L) {
        let Self {
            row,
            cells,
            neighbour_sums,
            drive,
            ahead,
        } = self;
        let (step, nz) = (row.step, row.step.cells[2].min(MAX_Z));
        let (content, temporal) = (3 * CHANNELS / 4 - DYNAMICS, CHANNELS / 4);
        let (n, m) = (content / L::Block::LEN, temporal / L::Block::LEN);
        let (scale, minus_rate) = (
            Floats::splat(lanes, row.scale),
            Floats::splat(lanes, -step.control[CONTROL_PULL]),
        );
        let minus_two = Floats::splat(lanes, -2.0);
        let (noise, mean) = (
            Floats::splat(lanes, row.noise),
            Floats::splat(lanes, MEAN as f32),
        );
        let (mut ahead, each) = lines(ahead, nz);
        let [_, west, _, south, column, north, _, east, _] = row.columns;
        // Written out: a closure over an array is not inlined here.
        let (west, east) = (
            &west.as_chunks::<CHANNELS>().0[..nz],
            &east.as_chunks().0[..nz],
        );
        let (south, north) = (
            &south.as_chunks::<CHANNELS>().0[..nz],
            &north.as_chunks().0[..nz],
        );
        let column = &column.as_chunks::<CHANNELS>().0[..nz];
        // The ends of the row have a neighbour that may be elsewhere in memory.
        let (mut below, end) = (
            &row.end(-1).as_chunks().0[0],
            &row.end(nz as isize).as_chunks().0[0],
        );
        let neighbour_sums = neighbour_sums
            .chunks_exact(content)
            .zip(neighbour_sums[content..].chunks_exact(content))
            .zip(neighbour_sums[2 * content..].chunks_exact(content));
        for (z, (drive, ((before, neighbour_sums), after))) in drive
            .chunks_exact_mut(content + temporal)
            .zip(neighbour_sums)
            .enumerate()
            .take(nz)
        {
            prefetch(&mut ahead, each);
            let decay = Floats::repeat(lanes, cells.decay[z]);
            let (stays, taken) = (
                Floats::splat(lanes, cells.register[0][z]),
                Floats::splat(lanes, cells.register[1][z]),
            );
            let coupling = Floats::splat(lanes, cells.coupling[z]);
            let (push, swell) = (
                Floats::splat(lanes, cells.push[z]),
                Floats::splat(lanes, cells.wave_term[z]),
            );
            let [dx, dy, dz] = [
                cells.diffusion[0][z],
                cells.diffusion[1][z],
                cells.diffusion[2][z],
            ];
            let diffusion = [
                Floats::splat(lanes, dx),
                Floats::splat(lanes, dy),
                Floats::splat(lanes, dz),
            ];
            let (here, above) = (&column[z], column.get(z + 1).unwrap_or(end));
            let near = FaceNeighbours {
                lanes,
                here,
                faces: [[&west[z], &east[z]], [&south[z], &north[z]], [below, above]],
                diffusion,
                minus_two,
            };
            below = here;
            let (content_drive, temporal_drive) = L::Block::cut_mut(drive).split_at_mut(n);

            // Content: decay times diffusion and coupling, and the library's recall.
            let pull = L::Block::as_blocks(&step.pull[row.region(z) * content..][..content]);
            let neighbour_sums = [
                L::Block::as_blocks(before),
                L::Block::as_blocks(neighbour_sums),
                L::Block::as_blocks(after),
            ];
            for i in 0..n {
                let ((here, spread), draw) = (
                    near.spread(i),
                    Floats::load(lanes, &content_drive[i]).sum_bytes() - mean,
                );
                let neighbour_sums = sum3(
                    lanes,
                    &neighbour_sums[0][i],
                    &neighbour_sums[1][i],
                    &neighbour_sums[2][i],
                );
                let kept = here + coupling.mul_add(neighbour_sums - here, spread);
                let pulled = minus_rate.mul_add(here, Floats::load(lanes, &pull[i]));
                content_drive[i] = decay
                    .mul_add(kept, scale.mul_add(pulled, noise.mul_add(draw, push)))
                    .store();
            }

            // Temporal: the register shifts.
            let previous = L::Block::as_blocks(&here[content - 1..][..temporal]);
            for i in 0..m {
                let ((here, spread), draw) = (
                    near.spread(n + i),
                    Floats::load(lanes, &temporal_drive[i]).sum_bytes() - mean,
                );
                let shifted = taken.mul_add(
                    Floats::load(lanes, &previous[i]),
                    noise.mul_add(draw, swell),
                );
                temporal_drive[i] = stays.mul_add(here + spread, shifted).store();
            }
        }
    }
}

/// Maximum blocks of content of a cell, with the lanes that its channel count is summed with.
const MAX_BLOCKS: usize = 19;

/// Computes the rules of the row's cells for the next cycle, scales the saturated field into place,
/// and sums it.
pub struct Finish<'a, 'b> {
    pub row: &'b Row<'a>,
    pub saturation: f32,
    /// \[Z\]\[evolving\].
    pub field: &'b [f32],
    pub y: &'b mut [f32],
    pub sums: &'b mut [f32],
    pub pooled: &'b mut [f32],
}

/// Channel masks of the four targets of a cell's rules, four channels each.
const PATTERNS: [[f32; DYNAMICS]; 4] = {
    let mut all = [[0.0; DYNAMICS]; 4];
    let mut channel = 0;
    while channel < DYNAMICS {
        all[channel / 4][channel] = 1.0;
        channel += 1;
    }
    all
};

impl Finish<'_, '_> {
    /// Runs it, sixteen lanes at a time if content and temporal channels are multiples of that.
    pub fn fold(self) {
        if self.row.step.channels.is_multiple_of(64) {
            run_16_lanes(self)
        } else {
            run_8_lanes(self)
        }
    }
}

impl LaneReduction for Finish<'_, '_> {
    #[inline(always)]
    fn run<L: ReducingLanes>(self, lanes: L) {
        let channels = self.row.step.channels;
        if L::Block::LEN == 16 {
            with_channels!(channels, |CHANNELS| self.run_cells::<L, CHANNELS>(lanes), 64 128 192 else 256);
        } else {
            with_channels!(channels, |CHANNELS| self.run_cells::<L, CHANNELS>(lanes), 32 96 160 else 224);
        }
    }
}

impl Finish<'_, '_> {
    #[inline(always)]
    fn run_cells<L: ReducingLanes, const CHANNELS: usize>(self, lanes: L) {
        let Self {
            row,
            saturation,
            field,
            y,
            sums,
            pooled,
        } = self;
        let Step {
            block,
            cells: [_, _, nz],
            live,
            ..
        } = *row.step;
        let (content, temporal) = (3 * CHANNELS / 4 - DYNAMICS, CHANNELS / 4);
        let (n, m, all) = (
            content / L::Block::LEN,
            temporal / L::Block::LEN,
            CHANNELS / L::Block::LEN,
        );
        let aims = row.aims::<L, CHANNELS>(lanes);
        let (none, saturation) = (Floats::splat(lanes, 0.0), Floats::splat(lanes, saturation));
        let rate = Floats::splat(lanes, number(live, LIVE_DYNAMICS_RATE));
        let [mut sum, mut size, mut square, mut temporal_size] = [none; 4];
        sums.fill(0.0);
        let sites = pooled.chunks_exact_mut(content);
        let cells = field
            .chunks_exact(content + temporal)
            .zip(y.chunks_exact_mut(CHANNELS))
            .zip(row.column().chunks_exact(CHANNELS));
        let mut cells = cells.enumerate().take(MAX_Z);
        for pooled in sites {
            let mut site = [none; MAX_BLOCKS];
            for (z, ((field, y), here)) in cells.by_ref().take(block) {
                let (field, y, here) = (
                    &L::Block::as_blocks(field)[..n + m],
                    &mut L::Block::cut_mut(y)[..all],
                    &L::Block::as_blocks(here)[..all],
                );
                let mut slice = none;
                for i in 0..n {
                    let v = saturation * Floats::load(lanes, &field[i]);
                    y[i] = v.store();
                    site[i] += v;
                    slice += v;
                    size += v.abs();
                    square = v.mul_add(v, square);
                }
                for i in n..n + m {
                    let v = saturation * Floats::load(lanes, &field[i]);
                    y[i] = v.store();
                    temporal_size += v.abs();
                }
                sum += slice;
                if z == 0 {
                    sums[3] = slice.fold();
                }
                if z + 1 == nz {
                    sums[4] = slice.fold();
                }
                // The rules of the cell in the next cycle.
                for i in 0..all - n - m {
                    let now = Floats::load(lanes, &here[n + m + i]);
                    let mut aim = none;
                    for (aims, pattern) in aims.iter().zip(&PATTERNS) {
                        aim = Floats::splat(lanes, aims[z])
                            .mul_add(Floats::load(lanes, &L::Block::as_blocks(pattern)[i]), aim);
                    }
                    y[n + m + i] = rate.mul_add(aim - now, now).clamp_abs(5.0).store();
                }
            }
            L::Block::cut_mut(pooled).iter_mut().zip(site).for_each(
                #[inline(always)]
                |(pooled, site)| *pooled = site.store(),
            );
        }
        for (at, total) in [(0, sum), (1, size), (2, square), (5, temporal_size)] {
            sums[at] = total.fold();
        }
    }
}

impl Row<'_> {
    /// The targets of each cell's rules in the next cycle: four arrays one after another, each
    /// \[Z\].
    #[inline(always)]
    fn aims<L: ReducingLanes, const CHANNELS: usize>(&self, lanes: L) -> [[f32; MAX_Z]; 4] {
        let Step { control, parts, .. } = self.step;
        let content = 3 * CHANNELS / 4 - DYNAMICS;
        let (none, little) = (Floats::splat(lanes, 0.0), Floats::splat(lanes, 0.1));
        // Sums over the content of each cell: the values, their squares, the number of quiet
        // channels.
        let [mut sums, mut squares, mut quiets, mut errors] = [[0.0f32; MAX_Z]; 4];
        for (z, here) in self.column().chunks_exact(CHANNELS).enumerate().take(MAX_Z) {
            let [mut sum, mut square, mut quiet] = [none; 3];
            for v in &L::Block::as_blocks(here)[..content / L::Block::LEN] {
                let v = Floats::load(lanes, v);
                sum += v;
                square = v.mul_add(v, square);
                quiet += v.abs().less_than(little);
            }
            (sums[z], squares[z], quiets[z]) = (sum.fold(), square.fold(), quiet.fold());
            errors[z] = control[CONTROL_REGION_ERROR + self.regions + parts[2][z]];
        }
        // Vectors run along Z.
        let (part, step, explore) = (
            1.0 / content as f32,
            control[CONTROL_STEP],
            control[CONTROL_EXPLORE],
        );
        let mut aims = [[0.0f32; MAX_Z]; 4];
        let [decays, diffusions, couplings, plasticities] = &mut aims;
        for z in 0..MAX_Z {
            let mean = part * sums[z];
            decays[z] = 2.0 - errors[z] * step;
            diffusions[z] = (part * squares[z] - mean * mean).max(0.0) * step;
            couplings[z] = 0.5 * step * part * quiets[z];
            plasticities[z] = 0.5 * step * (errors[z] * explore - 0.5);
        }
        aims
    }
}
