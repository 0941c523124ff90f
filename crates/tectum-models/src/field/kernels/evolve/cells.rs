//! The cells of a row. A cell has few channels, so what is done once a cell is kept little: all columns are walked by one index.

use tectum::kernel::lanes::{Block, EightLanes, Floats, Folding, Lanes, Work};
use tectum::kernel::native::prefetch_line;

use super::super::super::draw::{NOISE_UNIT, STRIDE, draw_from, start};
use super::super::super::layout::*;
use super::super::super::shape::DYNAMICS;
use super::super::super::storage::by_chance;
use super::super::number;
use super::coefficients::Coefficients;
use super::{MOST_CHANNELS, MOST_Z, Step, ZEROS, along};

/// Calls a function with the count of channels, a multiple of 32 from 32 to 256, known when it is compiled: loops over the few vectors of
/// a cell are unrolled then.
macro_rules! with_channels {
    ($channels:expr, |$known:ident| $call:expr) => {
        with_channels!($channels, $known, $call, 32 64 96 128 160 192 224)
    };
    ($channels:expr, $known:ident, $call:expr, $($number:literal)*) => {
        match $channels {
            $($number => { const $known: usize = $number; $call })*
            _ => { const $known: usize = 256; $call }
        }
    };
}

/// Sums of three columns along X at the row's own Y and on either side, each [Z][content].
#[derive(Clone)]
pub struct Threes {
    row: Option<[usize; 2]>,
    sums: [Vec<f32>; 3],
}

impl Threes {
    pub fn new(length: usize) -> Self {
        Self { row: None, sums: [0; 3].map(|_| vec![0.0; length]) }
    }
}

/// A row that is being made, and what all its cells share.
pub struct Row<'a> {
    step: &'a Step<'a>,
    place: [usize; 2],
    /// The nine columns of cells around it: X steps slowest.
    columns: [&'a [f32]; 9],
    scale: f32,
    noise: f32,
    key: [u32; 2],
    /// The first region that the row passes.
    regions: usize,
}

impl<'a> Row<'a> {
    pub fn new(step: &'a Step<'a>, px: usize, py: usize, columns: [&'a [f32]; 9]) -> Self {
        let live = step.live;
        Self {
            step,
            place: [px, py],
            columns,
            scale: 1.0 / number(live, LIVE_SATURATION),
            noise: step.control[CONTROL_DRIVE] * number(live, LIVE_NOISE) * NOISE_UNIT,
            key: [live[LIVE_KEY], live[LIVE_KEY + 1]],
            regions: step.region([px, py, 0]),
        }
    }

    /// The row's own column.
    pub fn column(&self) -> &'a [f32] {
        self.columns[4]
    }

    /// The noise of the evolving channels, \[Z\]\[evolving\]. Meanwhile memory is asked for some words, a part of them with each cell.
    #[inline(always)]
    pub fn draw(&self, noise: &mut [f32], ahead: &[u32]) {
        with_channels!(self.step.channels, |CHANNELS| self.draw_cells::<CHANNELS>(noise, ahead));
    }

    #[inline(always)]
    fn draw_cells<const CHANNELS: usize>(&self, noise: &mut [f32], ahead: &[u32]) {
        let span = ahead.len() / self.step.cells[2];
        for (z, noise) in noise.chunks_exact_mut(CHANNELS - DYNAMICS).enumerate() {
            prefetch(ahead, z * span, span);
            let first = start(self.first().wrapping_add((z * CHANNELS) as u32), self.key);
            for (i, noise) in noise.iter_mut().enumerate() {
                *noise = self.noise * draw_from(first.wrapping_add(STRIDE.wrapping_mul(i as u32)), self.key) as f32;
            }
        }
    }

    /// The number of the row's first element.
    #[inline(always)]
    fn first(&self) -> u32 {
        let Step { cells, channels, .. } = self.step;
        ((self.place[0] * cells[1] + self.place[1]) * cells[2] * channels) as u32
    }

    /// Scales the saturated field and rounds it as it is kept, \[Z\]\[evolving\].
    #[inline(always)]
    pub fn round(&self, field: &mut [f32]) {
        let (channels, saturation) = (self.step.channels, number(self.step.live, LIVE_SATURATION));
        for (z, field) in field.chunks_exact_mut(channels - DYNAMICS).enumerate() {
            let first = self.first().wrapping_add((z * channels) as u32);
            for (i, v) in field.iter_mut().enumerate() {
                *v = f32::from_bits(by_chance(saturation * *v, first.wrapping_add(i as u32), self.key));
            }
        }
    }

    /// Packs new values: evolving channels are rounded already, so that rounding leaves them; the cells' rules are rounded here.
    #[inline(always)]
    pub fn narrow(&self, values: &[f32], words: &mut [u32]) {
        let first = self.first();
        for (i, (word, pair)) in words.iter_mut().zip(values.as_chunks::<2>().0).enumerate() {
            let element = first.wrapping_add(2 * i as u32);
            let [low, high] = [by_chance(pair[0], element, self.key), by_chance(pair[1], element.wrapping_add(1), self.key)];
            *word = low >> 16 | high;
        }
    }

    /// The region of a cell.
    #[inline(always)]
    fn region(&self, z: usize) -> usize {
        self.regions + self.step.parts[2][z]
    }

    /// A cell of the row's own column, one step outside at most.
    #[inline(always)]
    fn end(&self, z: isize) -> &'a [f32] {
        let channels = self.step.channels;
        self.step.boundary.place(z, self.step.cells[2]).map_or(&ZEROS[..channels], |z| &self.columns[4][z * channels..][..channels])
    }

    /// What few cells and channels get: imprint, echo, strategic patterns.
    pub fn extras(&self, drive: &mut [f32]) {
        let Step { control, content, channels, cells, along_z, .. } = *self.step;
        let (evolving, scale) = (channels - DYNAMICS, self.scale);
        let away = |axis: usize, place: usize| (place as f32 - control[CONTROL_PLACE + axis]).abs();
        let aside = [0, 1].map(|axis| away(axis, self.place[axis]));
        let is_near = aside.iter().all(|aside| *aside < 2.5);
        let (forward, turn) = (control[CONTROL_ECHO_FORWARD], control[CONTROL_ECHO_TURN] * along(self.place[1], cells[1]));
        let weight = control[CONTROL_STRATEGIC_WEIGHT];
        for (z, drive) in drive.chunks_exact_mut(evolving).enumerate() {
            if is_near && away(2, z) < 2.5 {
                let intensity = control[CONTROL_INTENSITY] * 0.8f32.powi((aside[0] + aside[1] + away(2, z)).round() as i32);
                for (drive, pattern) in drive[..content].iter_mut().zip(&control[CONTROL_PATTERN..]) {
                    *drive += scale * intensity * pattern;
                }
            }
            let [.., before, last] = drive else { return };
            *before += scale * (forward * along_z[z] + turn);
            *last += scale * control[CONTROL_ECHO_MEAN];
            if weight != 0.0 {
                for (drive, pattern) in drive[content..].iter_mut().zip(&control[CONTROL_STRATEGIC..]) {
                    *drive = (1.0 - weight) * *drive + weight * scale * pattern;
                }
            }
        }
    }
}

/// Sums over the columns at each cell of the row and one beyond either end: of three columns along X at a time, of which the
/// next row along Y needs two again.
pub struct Columns<'a, 'b> {
    pub row: &'b Row<'a>,
    pub threes: &'b mut Threes,
    /// \[Z + 2\]\[content\].
    pub around: &'b mut [f32],
}

impl Work for Columns<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self { row, threes, around } = self;
        let (&Step { content, channels, cells: [_, _, nz], .. }, [px, py]) = (row.step, row.place);
        let follows = py > 0 && threes.row == Some([px, py - 1]);
        threes.row = Some(row.place);
        if follows {
            threes.sums.rotate_left(1);
        }
        for side in if follows { 2 } else { 0 }..3 {
            let [west, here, east] = [row.columns[side], row.columns[3 + side], row.columns[6 + side]];
            let cells = west.chunks_exact(channels).zip(here.chunks_exact(channels)).zip(east.chunks_exact(channels));
            for (sums, ((west, here), east)) in threes.sums[side].chunks_exact_mut(content).zip(cells) {
                add3(lanes, sums, [&west[..content], &here[..content], &east[..content]]);
            }
        }
        let [south, middle, north] = &threes.sums;
        add3(lanes, &mut around[content..(nz + 1) * content], [south, middle, north]);
        for (end, outside) in [(0, -1), (nz + 1, nz as isize)] {
            match row.step.boundary.place(outside, nz) {
                Some(z) => around.copy_within((z + 1) * content..(z + 2) * content, end * content),
                None => around[end * content..][..content].fill(0.0),
            }
        }
    }
}

/// (a + b) + c of as many numbers as `sums` has.
#[inline(always)]
fn add3<L: Lanes>(lanes: L, sums: &mut [f32], [a, b, c]: [&[f32]; 3]) {
    let terms = L::Block::cut(a).iter().zip(L::Block::cut(b)).zip(L::Block::cut(c));
    L::Block::cut_mut(sums).iter_mut().zip(terms).for_each(#[inline(always)] |(sum, ((a, b), c))| *sum = sum3(lanes, a, b, c).store());
}

/// (a + b) + c.
#[inline(always)]
fn sum3<L: Lanes>(lanes: L, a: &L::Block, b: &L::Block, c: &L::Block) -> Floats<L> {
    (Floats::load(lanes, a) + Floats::load(lanes, b)) + Floats::load(lanes, c)
}

/// Asks for some words, or none if there are not as many.
#[inline(always)]
fn prefetch(words: &[u32], first: usize, count: usize) {
    let words = words.get(first..first + count).unwrap_or_default();
    words.chunks(16).for_each(#[inline(always)] |line| prefetch_line(line, 0));
}

/// The blocks of a cell of a column.
#[inline(always)]
fn cell<L: Lanes>(column: &[f32], z: usize, all: usize) -> &[L::Block] {
    &L::Block::cut(&column[z * all * L::Block::LEN..])[..all]
}

/// The argument of the saturation for the evolving channels but for what few cells get.
pub struct Drive<'a, 'b> {
    pub row: &'b Row<'a>,
    pub cells: &'b Coefficients,
    pub around: &'b [f32],
    /// The noise, and in its place the argument, \[Z\]\[evolving\].
    pub drive: &'b mut [f32],
    /// What is asked of memory meanwhile, a part of it with each cell.
    pub ahead: &'b [u32],
}

/// A cell with its six faces, and how it spreads along each axis.
struct Near<'a, L: Lanes> {
    lanes: L,
    /// The columns to the west and east, south and north.
    beside: [&'a [L::Block]; 4],
    /// The cells below, here and above.
    along: &'a [L::Block],
    all: usize,
    diffusion: [Floats<L>; 3],
}

impl<L: Lanes> Near<'_, L> {
    /// Some channels, and Σ D Δx of them.
    #[inline(always)]
    fn spread(&self, i: usize) -> (Floats<L>, Floats<L>) {
        let here = Floats::load(self.lanes, &self.along[self.all + i]);
        let twice = here + here;
        let [dx, dy, dz] = self.diffusion;
        let [west, east, south, north] = self.beside;
        let along_x = dx * (self.both(&west[i], &east[i]) - twice);
        let along_y = dy * (self.both(&south[i], &north[i]) - twice);
        (here, (along_x + along_y) + dz * (self.both(&self.along[i], &self.along[2 * self.all + i]) - twice))
    }

    #[inline(always)]
    fn both(&self, a: &L::Block, b: &L::Block) -> Floats<L> {
        Floats::load(self.lanes, a) + Floats::load(self.lanes, b)
    }
}

impl Work for Drive<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        with_channels!(self.row.step.channels, |CHANNELS| self.run_cells::<L, CHANNELS>(lanes));
    }
}

impl Drive<'_, '_> {
    #[inline(always)]
    fn run_cells<L: Lanes, const CHANNELS: usize>(self, lanes: L) {
        let Self { row, cells, around, drive, ahead } = self;
        let (step, nz, column) = (row.step, row.step.cells[2].min(MOST_Z), row.column());
        let (content, temporal) = (3 * CHANNELS / 4 - DYNAMICS, CHANNELS / 4);
        let (n, m, all) = (content / L::Block::LEN, temporal / L::Block::LEN, CHANNELS / L::Block::LEN);
        let (scale, rate) = (Floats::splat(lanes, row.scale), Floats::splat(lanes, step.control[CONTROL_PULL]));
        let (most, least) = (Floats::splat(lanes, 0.85), Floats::splat(lanes, 0.15));
        let span = ahead.len() / nz;
        // The ends of the row have a neighbour that may lie elsewhere.
        let mut ends = [0.0; 3 * MOST_CHANNELS];
        for (z, drive) in drive.chunks_exact_mut(content + temporal).enumerate().take(nz) {
            prefetch(ahead, z * span, span);
            let along = if z == 0 || z + 1 == nz {
                for (end, at) in ends.chunks_exact_mut(CHANNELS).zip(z as isize - 1..) {
                    end.copy_from_slice(row.end(at));
                }
                &ends[..3 * CHANNELS]
            } else {
                &column[(z - 1) * CHANNELS..][..3 * CHANNELS]
            };
            let decay = Floats::repeat(lanes, [cells.decay[0][z], cells.decay[1][z], cells.decay[2][z], cells.decay[3][z]]);
            let (mean_decay, coupling) = (Floats::splat(lanes, cells.mean_decay[z]), Floats::splat(lanes, cells.coupling[z]));
            let (push, swell) = (Floats::splat(lanes, cells.push[z]), Floats::splat(lanes, cells.swell[z]));
            let [dx, dy, dz] = [cells.diffusion[0][z], cells.diffusion[1][z], cells.diffusion[2][z]];
            let diffusion = [Floats::splat(lanes, dx), Floats::splat(lanes, dy), Floats::splat(lanes, dz)];
            let [_, west, _, south, _, north, _, east, _] = row.columns;
            // Written out: a closure over an array is not inlined here.
            let beside = [cell::<L>(west, z, all), cell::<L>(east, z, all), cell::<L>(south, z, all), cell::<L>(north, z, all)];
            let near = Near { lanes, beside, along: &L::Block::cut(along)[..3 * all], all, diffusion };
            let (content_drive, temporal_drive) = L::Block::cut_mut(drive)[..n + m].split_at_mut(n);

            // Content: decay of diffusion and coupling, and what the library recalls.
            let pull = &L::Block::cut(&step.pull[row.region(z) * content..][..content])[..n];
            let around = &L::Block::cut(&around[z * content..][..3 * content])[..3 * n];
            for (i, drive) in content_drive.iter_mut().enumerate() {
                let ((here, spread), noise) = (near.spread(i), Floats::load(lanes, drive));
                let around = sum3(lanes, &around[i], &around[n + i], &around[2 * n + i]);
                let kept = here + (spread + coupling * (around - here));
                *drive = (scale * ((decay * kept + (push + (Floats::load(lanes, &pull[i]) - rate * here))) + noise)).store();
            }

            // Temporal: the register shifts.
            let previous = &L::Block::cut(&along[CHANNELS + content - 1..][..temporal])[..m];
            for (i, drive) in temporal_drive.iter_mut().enumerate() {
                let ((here, spread), noise) = (near.spread(n + i), Floats::load(lanes, drive));
                let shifted = most * (here + spread) + least * Floats::load(lanes, &previous[i]);
                *drive = (scale * ((mean_decay * shifted + swell) + noise)).store();
            }
        }
    }
}

/// Makes the rules of the row's cells in the next cycle, scales the saturated field into place, and adds it up.
pub struct Finish<'a, 'b> {
    pub row: &'b Row<'a>,
    pub saturation: f32,
    /// \[Z\]\[evolving\].
    pub field: &'b [f32],
    pub y: &'b mut [f32],
    pub sums: &'b mut [f32],
    pub pooled: &'b mut [f32],
}

impl Folding for Finish<'_, '_> {
    #[inline(always)]
    fn run<L: EightLanes>(self, lanes: L) {
        with_channels!(self.row.step.channels, |CHANNELS| self.run_cells::<L, CHANNELS>(lanes));
    }
}

impl Finish<'_, '_> {
    #[inline(always)]
    fn run_cells<L: EightLanes, const CHANNELS: usize>(self, lanes: L) {
        let Self { row, saturation, field, y, sums, pooled } = self;
        let Step { block, cells: [_, _, nz], live, .. } = *row.step;
        let (content, temporal) = (3 * CHANNELS / 4 - DYNAMICS, CHANNELS / 4);
        let (n, m, all) = (content / 8, temporal / 8, CHANNELS / 8);
        let targets = row.targets::<L, CHANNELS>(lanes);
        let (none, saturation) = (Floats::splat(lanes, 0.0), Floats::splat(lanes, saturation));
        let rate = Floats::splat(lanes, number(live, LIVE_DYNAMICS_RATE));
        let [mut sum, mut size, mut square, mut temporal_size] = [none; 4];
        sums.fill(0.0);
        pooled.fill(0.0);
        let sites = pooled.chunks_exact_mut(content);
        let cells = field.chunks_exact(content + temporal).zip(y.chunks_exact_mut(CHANNELS)).zip(row.column().chunks_exact(CHANNELS));
        let mut cells = cells.zip(&targets).enumerate();
        for pooled in sites {
            let pooled = &mut <[f32; 8]>::cut_mut(pooled)[..n];
            for (z, (((field, y), here), targets)) in cells.by_ref().take(block) {
                let (field, y, here) = (&<[f32; 8]>::cut(field)[..n + m], &mut <[f32; 8]>::cut_mut(y)[..all], &<[f32; 8]>::cut(here)[..all]);
                let mut slice = none;
                for i in 0..n {
                    let v = saturation * Floats::load(lanes, &field[i]);
                    y[i] = v.store();
                    pooled[i] = (Floats::load(lanes, &pooled[i]) + v).store();
                    slice += v;
                    size += v.abs();
                    square += v * v;
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
                for half in 0..2 {
                    let now = Floats::load(lanes, &here[n + m + half]);
                    y[n + m + half] = (now + rate * (Floats::load(lanes, &targets[half]) - now)).held_to(5.0).store();
                }
            }
        }
        for (at, total) in [(0, sum), (1, size), (2, square), (5, temporal_size)] {
            sums[at] = total.fold();
        }
    }
}

impl Row<'_> {
    /// What the rules of each cell tend to in the next cycle.
    #[inline(always)]
    fn targets<L: EightLanes, const CHANNELS: usize>(&self, lanes: L) -> [[[f32; 8]; 2]; MOST_Z] {
        let Step { control, cells: [_, _, nz], .. } = *self.step;
        let content = 3 * CHANNELS / 4 - DYNAMICS;
        let (none, little) = (Floats::splat(lanes, 0.0), Floats::splat(lanes, 0.1));
        // Sums over the content of each cell: itself, its square, how many are quiet.
        let mut sums = [[0.0f32; MOST_Z]; 3];
        for (z, here) in self.column().chunks_exact(CHANNELS).enumerate().take(MOST_Z) {
            let [mut sum, mut square, mut quiet] = [none; 3];
            for v in &<[f32; 8]>::cut(here)[..content / 8] {
                let v = Floats::load(lanes, v);
                sum += v;
                square += v * v;
                quiet += v.abs().is_below(little);
            }
            (sums[0][z], sums[1][z], sums[2][z]) = (sum.fold(), square.fold(), quiet.fold());
        }
        let (count, step, explore) = (content as f32, control[CONTROL_STEP], control[CONTROL_EXPLORE]);
        let mut targets = [[[0.0; 8]; 2]; MOST_Z];
        let [sums, squares, quiets] = &sums;
        for (z, (((targets, sum), square), quiet)) in targets.iter_mut().zip(sums).zip(squares).zip(quiets).enumerate().take(nz) {
            let mean = sum / count;
            let variance = (square / count - mean * mean).max(0.0);
            let error = control[CONTROL_REGION_ERROR + self.region(z)];
            let (decay, diffusion) = (2.0 - error * step, variance * step);
            let (coupling, plasticity) = (0.5 * step * quiet / count, 0.5 * step * (error * explore - 0.5));
            let halves = |low: f32, high: f32| [low, low, low, low, high, high, high, high];
            *targets = [halves(decay, diffusion), halves(coupling, plasticity)];
        }
        targets
    }
}
