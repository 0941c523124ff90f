//! The cells of a row. A cell has few channels, so what is done once a cell is kept little: all columns are walked by one index.

use std::ops::Range;

use tectum::kernel::lanes::{Block, EightLanes, Floats, Folding, Lanes, Work};
use tectum::kernel::native::prefetch_line;

use super::super::super::draw::{NOISE_UNIT, draw};
use super::super::super::layout::*;
use super::super::super::shape::DYNAMICS;
use super::super::super::storage::by_chance;
use super::super::number;
use super::coefficients::Coefficients;
use super::{MOST_Z, Step, ZEROS, along};

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

    /// The noise of the evolving channels, \[Z\]\[evolving\].
    #[inline(always)]
    pub fn draw(&self, noise: &mut [f32]) {
        let channels = self.step.channels;
        for (z, noise) in noise.chunks_exact_mut(channels - DYNAMICS).enumerate() {
            let first = self.first().wrapping_add((z * channels) as u32);
            for (i, noise) in noise.iter_mut().enumerate() {
                *noise = self.noise * draw(first.wrapping_add(i as u32), self.key) as f32;
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

/// The argument of the saturation for the evolving channels but for what few cells get.
pub struct Drive<'a, 'b> {
    pub row: &'b Row<'a>,
    pub cells: &'b Coefficients,
    pub around: &'b [f32],
    /// The noise, and in its place the argument, \[Z\]\[evolving\].
    pub drive: &'b mut [f32],
    /// What is asked of memory meanwhile, a cell at a time: the column that the next row needs first, and where this row's values go.
    pub ahead: [&'b [u32]; 2],
}

/// A cell with its six faces, and how it spreads along each axis.
struct Near<'a, L: Lanes> {
    lanes: L,
    here: &'a [L::Block],
    west: &'a [L::Block],
    east: &'a [L::Block],
    south: &'a [L::Block],
    north: &'a [L::Block],
    below: &'a [L::Block],
    above: &'a [L::Block],
    diffusion: [Floats<L>; 3],
}

impl<L: Lanes> Near<'_, L> {
    /// Some channels, and Σ D Δx of them.
    #[inline(always)]
    fn spread(&self, i: usize) -> (Floats<L>, Floats<L>) {
        let here = Floats::load(self.lanes, &self.here[i]);
        let twice = here + here;
        let [dx, dy, dz] = self.diffusion;
        let along_x = dx * (self.both(&self.west[i], &self.east[i]) - twice);
        let along_y = dy * (self.both(&self.south[i], &self.north[i]) - twice);
        (here, (along_x + along_y) + dz * (self.both(&self.below[i], &self.above[i]) - twice))
    }

    #[inline(always)]
    fn both(&self, a: &L::Block, b: &L::Block) -> Floats<L> {
        Floats::load(self.lanes, a) + Floats::load(self.lanes, b)
    }
}

impl Work for Drive<'_, '_> {
    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        let (channels, nz, column) = (self.row.step.channels, self.row.step.cells[2], self.row.column());
        // The ends of the row have a neighbour that may lie elsewhere.
        let (last, inner) = (nz - 1, channels * (nz - 2));
        self.run_cells(lanes, 0..1, self.row.end(-1), &column[channels..][..channels]);
        self.run_cells(lanes, 1..last, &column[..inner], &column[2 * channels..]);
        self.run_cells(lanes, last..nz, &column[inner..][..channels], self.row.end(nz as isize));
    }
}

impl Drive<'_, '_> {
    /// Some cells of the row, whose neighbours along Z are given.
    #[inline(always)]
    fn run_cells<L: Lanes>(&mut self, lanes: L, places: Range<usize>, below: &[f32], above: &[f32]) {
        let Self { row, cells, around, drive, ahead } = self;
        let step = row.step;
        let ([content, temporal], channels) = ([step.content, step.channels / 4], step.channels);
        let [n, m, all] = [content, temporal, channels].map(|channels| channels / L::Block::LEN);
        let first = places.start;
        let (scale, rate) = (Floats::splat(lanes, row.scale), Floats::splat(lanes, step.control[CONTROL_PULL]));
        let (most, least) = (Floats::splat(lanes, 0.85), Floats::splat(lanes, 0.15));
        let column = |index: usize| L::Block::cut(&row.columns[index][first * channels..]).chunks_exact(all);
        let beside = column(1).zip(column(7)).zip(column(3)).zip(column(5));
        let ends = [below, above].map(|column| L::Block::cut(column).chunks_exact(all));
        let [below, above] = ends;
        let [one, two, three] = [0, 1, 2].map(|step| L::Block::cut(&around[(first + step) * content..]).chunks_exact(n));
        // What the register shifts: each temporal channel's neighbour before.
        let before = &row.column()[first * channels + content - 1..];
        let blocks = L::Block::cut_mut(&mut drive[first * (content + temporal)..]).chunks_exact_mut(n + m);
        let all_cells = blocks.zip(column(4)).zip(beside).zip(below.zip(above)).zip(one.zip(two).zip(three));
        for (at, ((((drive, here), (((west, east), south), north)), (below, above)), ((one, two), three))) in all_cells.take(places.len()).enumerate() {
            let z = (first + at).min(MOST_Z - 1);
            for words in ahead.iter() {
                let cell = z * words.len() / step.cells[2];
                (0..channels).step_by(16).for_each(#[inline(always)] |line| prefetch_line(words, cell + line));
            }
            let decay = Floats::repeat(lanes, [cells.decay[0][z], cells.decay[1][z], cells.decay[2][z], cells.decay[3][z]]);
            let (mean_decay, coupling) = (Floats::splat(lanes, cells.mean_decay[z]), Floats::splat(lanes, cells.coupling[z]));
            let (push, swell) = (Floats::splat(lanes, cells.push[z]), Floats::splat(lanes, cells.swell[z]));
            let [dx, dy, dz] = [cells.diffusion[0][z], cells.diffusion[1][z], cells.diffusion[2][z]];
            let diffusion = [Floats::splat(lanes, dx), Floats::splat(lanes, dy), Floats::splat(lanes, dz)];
            let near = Near { lanes, here, west, east, south, north, below, above, diffusion };
            let (content_drive, temporal_drive) = drive.split_at_mut(n);

            // Content: decay of diffusion and coupling, and what the library recalls.
            let pull = &L::Block::cut(&step.pull[row.region(z) * content..])[..n];
            for (i, drive) in content_drive.iter_mut().enumerate().take(all) {
                let ((here, spread), noise) = (near.spread(i), Floats::load(lanes, drive));
                let around = sum3(lanes, &one[i], &two[i], &three[i]);
                let kept = here + (spread + coupling * (around - here));
                *drive = (scale * ((decay * kept + (push + (Floats::load(lanes, &pull[i]) - rate * here))) + noise)).store();
            }

            // Temporal: the register shifts.
            let previous = &L::Block::cut(&before[at * channels..])[..m];
            for (i, drive) in temporal_drive.iter_mut().enumerate().take(all - n) {
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
        let Self { row, saturation, field, y, sums, pooled } = self;
        let Step { block, cells, .. } = *row.step;
        let Step { content, channels, .. } = *row.step;
        let ([n, m, all], nz) = ([content, channels / 4, channels].map(|channels| channels / 8), cells[2]);
        let (none, saturation) = (Floats::splat(lanes, 0.0), Floats::splat(lanes, saturation));
        let [mut sum, mut size, mut square, mut temporal] = [none; 4];
        sums.fill(0.0);
        pooled.fill(0.0);
        let (pooled, here) = (<[f32; 8]>::cut_mut(pooled), <[f32; 8]>::cut(row.column()));
        let cells = <[f32; 8]>::cut(field).chunks_exact(n + m).zip(<[f32; 8]>::cut_mut(y).chunks_exact_mut(all)).zip(here.chunks_exact(all));
        for (z, ((field, y), here)) in cells.enumerate() {
            let mut slice = none;
            let pooled = &mut pooled[z / block * n..][..n];
            for ((field, y), pooled) in field.iter().zip(&mut *y).zip(pooled) {
                let v = saturation * Floats::load(lanes, field);
                *y = v.store();
                *pooled = (Floats::load(lanes, pooled) + v).store();
                slice += v;
                size += v.abs();
                square += v * v;
            }
            for (field, y) in field[n..].iter().zip(&mut y[n..]) {
                let v = saturation * Floats::load(lanes, field);
                *y = v.store();
                temporal += v.abs();
            }
            sum += slice;
            if z == 0 {
                sums[3] = slice.fold();
            }
            if z + 1 == nz {
                sums[4] = slice.fold();
            }
            row.rules(lanes, z, here, &mut y[n + m..]);
        }
        for (at, total) in [(0, sum), (1, size), (2, square), (5, temporal)] {
            sums[at] = total.fold();
        }
    }
}

impl Row<'_> {
    /// The rules of a cell in the next cycle.
    #[inline(always)]
    fn rules<L: EightLanes>(&self, lanes: L, z: usize, here: &[[f32; 8]], next: &mut [[f32; 8]]) {
        let Step { live, control, content, .. } = *self.step;
        let (n, m) = (content / 8, self.step.channels / 32);
        let (none, little) = (Floats::splat(lanes, 0.0), Floats::splat(lanes, 0.1));
        let [mut sums, mut squares, mut quiet] = [none; 3];
        for v in &here[..n] {
            let v = Floats::load(lanes, v);
            sums += v;
            squares += v * v;
            quiet += v.abs().is_below(little);
        }
        let (count, rate, step) = (content as f32, number(live, LIVE_DYNAMICS_RATE), control[CONTROL_STEP]);
        let mean = sums.fold() / count;
        let variance = (squares.fold() / count - mean * mean).max(0.0);
        let error = control[CONTROL_REGION_ERROR + self.region(z)];
        let a = [2.0 - error * step, variance * step];
        let b = [0.5 * step * quiet.fold() / count, 0.5 * step * (error * control[CONTROL_EXPLORE] - 0.5)];
        let rate = Floats::splat(lanes, rate);
        for ((next, now), [low, high]) in next.iter_mut().zip(&here[n + m..]).zip([a, b]) {
            let (now, target) = (Floats::load(lanes, now), Floats::load(lanes, &[low, low, low, low, high, high, high, high]));
            *next = (now + rate * (target - now)).held_to(5.0).store();
        }
    }
}
