//! One step of the field: rows along Z are shared over threads, vectors run over channels.
//!
//! A row is made in four passes over buffers that stay in L1: sums of the nine columns around it; coefficients of its cells; the
//! argument of the saturation; then tanh, sums and pooling. Every row is made alike whichever thread makes it.

use rayon::prelude::*;
use tectum::kernel::math::slices;
use tectum::kernel::native::{PREFETCH_STEP, prefetch, simd};
use tectum::{Boundary, NativeCall};

use super::super::draw::{NOISE_UNIT, draw};
use super::super::layout::*;
use super::super::shape::DYNAMICS;
use super::super::waves::WAVES;
use super::number;

/// Arguments of the logistic function of a cell: four decays, three diffusions and the coupling's weight twice, two plasticities.
const GATES: usize = 10;
/// Coefficients of a cell: four decays, their mean, diffusion along X, Y and Z, coupling, what is added to content, and to temporal.
const COEFFICIENTS: usize = 11;
/// Channels that are worked on together: content and temporal channels are whole numbers of these.
const LANES: usize = 8;
/// Rows that a thread takes at once, one after the other along Y.
const ROWS_PER_TASK: usize = 16;

/// What every row of a launch is made with.
struct Step<'a> {
    x: &'a [f32],
    live: &'a [u32],
    control: &'a [f32],
    tables: &'a [f32],
    pull: &'a [f32],
    cells: [usize; 3],
    channels: usize,
    content: usize,
    boundary: Boundary,
    block: usize,
    zeros: Vec<f32>,
    /// Which of the four parts of each axis a place is in.
    parts: [Vec<usize>; 3],
    /// Steps along Z to the centre of a cell's region.
    from_centre: Vec<usize>,
    /// Where a cell is along Z, from −1 to 1.
    along_z: Vec<f32>,
}

/// Sums of three columns along X at the row's own Y and on either side, each [Z][content].
#[derive(Clone)]
struct Threes {
    row: Option<usize>,
    sums: [Vec<f32>; 3],
}

/// The buffers of a thread.
#[derive(Clone)]
struct Scratch {
    threes: Threes,
    /// Sums over the nine columns of cells −1 to Z, [Z + 2][content].
    columns: Vec<f32>,
    /// Arguments and values of the logistic functions, [GATES][Z].
    gates: [Vec<f32>; 2],
    /// Coefficients of the row's cells, [COEFFICIENTS][Z].
    cells: Vec<f32>,
    /// Arguments and values of the saturation, [Z][content + temporal].
    field: [Vec<f32>; 2],
}

/// Some rows by their number over [`ROWS_PER_TASK`]: the new field, its sums, its pooled sums.
type Task<'a> = (usize, ((&'a mut [f32], &'a mut [f32]), &'a mut [f32]));

/// Coefficients of a cell.
struct Cell {
    decay: [f32; LANES],
    mean_decay: f32,
    diffusion: [f32; 3],
    coupling: f32,
    push: f32,
    swell: f32,
}

pub fn native(call: &NativeCall<'_>) {
    let cells = [0, 1, 2].map(|index| call.size(index));
    let [channels, block] = [3, 5].map(|index| call.size(index));
    let content = 3 * channels / 4 - DYNAMICS;
    let (x, live) = (call.read::<f32>(0), call.read::<u32>(1));
    let [control, tables, pull] = [2, 3, 4].map(|index| call.read::<f32>(index));
    let [y, rows, pooled] = [5, 6, 7].map(|index| call.write::<f32>(index));
    let [nx, ny, nz] = cells;
    let zeros = vec![0.0; nz * channels];
    let step = Step {
        x,
        live,
        control,
        tables,
        pull,
        cells,
        channels,
        content,
        boundary: Boundary::ALL[call.size(4)],
        block,
        zeros,
        parts: cells.map(|size| (0..size).map(|place| place / (size / 4)).collect()),
        from_centre: (0..nz).map(|z| from_centre(z, nz)).collect(),
        along_z: (0..nz).map(|z| along(z, nz)).collect(),
    };
    let evolving = channels - DYNAMICS;
    let scratch = Scratch {
        threes: Threes { row: None, sums: [0; 3].map(|_| vec![0.0; nz * content]) },
        columns: vec![0.0; (nz + 2) * content],
        gates: [vec![0.0; nz * GATES], vec![0.0; nz * GATES]],
        cells: vec![0.0; nz * COEFFICIENTS],
        field: [vec![0.0; nz * evolving], vec![0.0; nz * evolving]],
    };
    let (length, line) = (nz * channels, nz / block * content);
    let rows = rows.chunks_mut(ROW_WORDS * ROWS_PER_TASK);
    let parts = y[..nx * ny * length].chunks_mut(length * ROWS_PER_TASK).zip(rows).zip(pooled.chunks_mut(line * ROWS_PER_TASK));
    let tasks: Vec<_> = parts.enumerate().collect();
    let work = |scratch: &mut Scratch, (task, ((y, rows), pooled)): Task<'_>| {
        let parts = y.chunks_mut(length).zip(rows.chunks_mut(ROW_WORDS)).zip(pooled.chunks_mut(line));
        for (row, ((y, sums), pooled)) in parts.enumerate() {
            step.row(task * ROWS_PER_TASK + row, scratch, y, sums, pooled);
        }
    };
    // An element takes about as long as sixteen that stream.
    if call.threads_for(16 * nx * ny * length) > 1 {
        tasks.into_par_iter().for_each_init(|| scratch.clone(), work);
    } else {
        let mut scratch = scratch;
        tasks.into_iter().for_each(|task| work(&mut scratch, task));
    }
}

/// Steps along an axis to the centre of a place's region.
fn from_centre(place: usize, size: usize) -> usize {
    (place % (size / 4)).abs_diff(size / 8)
}

/// Where a place is along an axis, from −1 to 1.
fn along(place: usize, size: usize) -> f32 {
    2.0 * place as f32 / (size - 1) as f32 - 1.0
}

/// A cell and its six faces.
struct Near<'a> {
    here: &'a [[f32; LANES]],
    west: &'a [[f32; LANES]],
    east: &'a [[f32; LANES]],
    south: &'a [[f32; LANES]],
    north: &'a [[f32; LANES]],
    below: &'a [[f32; LANES]],
    above: &'a [[f32; LANES]],
}

impl Near<'_> {
    /// Σ D Δx of some lanes.
    #[inline(always)]
    fn spread(&self, i: usize, [dx, dy, dz]: [f32; 3]) -> [f32; LANES] {
        let (here, west, east, south) = (&self.here[i], &self.west[i], &self.east[i], &self.south[i]);
        let (north, below, above) = (&self.north[i], &self.below[i], &self.above[i]);
        each(#[inline(always)] |l| {
            let twice = 2.0 * here[l];
            (dx * ((west[l] + east[l]) - twice) + dy * ((south[l] + north[l]) - twice)) + dz * ((below[l] + above[l]) - twice)
        })
    }
}

/// Numbers in eights; there are no others.
#[inline(always)]
fn lanes(numbers: &[f32]) -> &[[f32; LANES]] {
    numbers.as_chunks().0
}

#[inline(always)]
fn lanes_mut(numbers: &mut [f32]) -> &mut [[f32; LANES]] {
    numbers.as_chunks_mut().0
}

/// The number of each lane. They are all made before any is stored: what is read may lie where it is stored, for all that the
/// compiler knows, and one at a time is six times as slow.
#[inline(always)]
fn each(number: impl Fn(usize) -> f32) -> [f32; LANES] {
    [number(0), number(1), number(2), number(3), number(4), number(5), number(6), number(7)]
}

#[inline(always)]
fn add3(a: &[f32; LANES], b: &[f32; LANES], c: &[f32; LANES]) -> [f32; LANES] {
    each(#[inline(always)] |l| (a[l] + b[l]) + c[l])
}

/// The sum of eight lanes, in a tree.
#[inline(always)]
pub fn fold(lanes: [f32; LANES]) -> f32 {
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

impl Step<'_> {
    fn row(&self, row: usize, scratch: &mut Scratch, y: &mut [f32], sums: &mut [f32], pooled: &mut [f32]) {
        let [_, ny, nz] = self.cells;
        let (px, py) = (row / ny, row % ny);
        let columns = self.columns(px, py);
        let Scratch { threes, columns: around, gates: [arguments, gates], cells, field: [drive, field] } = scratch;
        simd(
            #[inline(always)]
            || {
                self.add_columns(row, &columns, threes, around);
                self.arguments(columns[4], arguments);
            },
        );
        slices::sigmoid(arguments, gates);
        simd(
            #[inline(always)]
            || self.prepare([px, py], gates, cells),
        );
        let scale = 1.0 / number(self.live, LIVE_SATURATION);
        // The one column that the next row asks memory for first: it arrives while this row is made.
        let ahead = ((px + 1) * ny + py + 2) * nz * self.channels;
        for z in 0..nz {
            for line in (0..self.channels).step_by(PREFETCH_STEP) {
                prefetch(self.x, ahead + z * self.channels + line);
            }
            let at = |coefficient: usize| cells[coefficient * nz + z];
            let cell = Cell {
                decay: [at(0), at(1), at(2), at(3), at(0), at(1), at(2), at(3)],
                mean_decay: at(4),
                diffusion: [at(5), at(6), at(7)],
                coupling: at(8),
                push: at(9),
                swell: at(10),
            };
            let drive = &mut drive[z * (self.channels - DYNAMICS)..][..self.channels - DYNAMICS];
            simd(
                #[inline(always)]
                || self.drive([px, py, z], &columns, around, &cell, drive),
            );
            self.extras([px, py, z], drive, scale);
        }
        slices::tanh(drive, field);
        simd(
            #[inline(always)]
            || {
                for z in 0..nz {
                    self.dynamics([px, py, z], &columns[4][z * self.channels..][..self.channels], &mut y[z * self.channels..][..self.channels]);
                }
                self.finish(field, y, sums, pooled);
            },
        );
    }

    /// The nine columns of cells around a row: X steps slowest.
    fn columns(&self, px: usize, py: usize) -> [&[f32]; 9] {
        let [nx, ny, nz] = self.cells;
        let length = nz * self.channels;
        std::array::from_fn(|index| {
            let x = self.boundary.place(px as isize + index as isize / 3 - 1, nx);
            let y = self.boundary.place(py as isize + index as isize % 3 - 1, ny);
            x.zip(y).map_or(&self.zeros[..], |(x, y)| &self.x[(x * ny + y) * length..][..length])
        })
    }

    /// Sums over the columns at each cell of the row and one beyond either end: of three columns along X at a time, of which the
    /// next row along Y needs two again.
    #[inline(always)]
    fn add_columns(&self, row: usize, columns: &[&[f32]; 9], threes: &mut Threes, around: &mut [f32]) {
        let nz = self.cells[2];
        let follows = threes.row == Some(row.wrapping_sub(1)) && !row.is_multiple_of(self.cells[1]);
        threes.row = Some(row);
        if follows {
            threes.sums.rotate_left(1);
        }
        for side in if follows { 2 } else { 0 }..3 {
            let sums = &mut threes.sums[side];
            for z in 0..nz {
                let west = lanes(&columns[side][z * self.channels..][..self.content]);
                let here = lanes(&columns[3 + side][z * self.channels..][..self.content]);
                let east = lanes(&columns[6 + side][z * self.channels..][..self.content]);
                let sums = lanes_mut(&mut sums[z * self.content..][..self.content]);
                for (((sum, west), here), east) in sums.iter_mut().zip(west).zip(here).zip(east) {
                    *sum = add3(west, here, east);
                }
            }
        }
        let [south, middle, north] = &threes.sums;
        let inside = lanes_mut(&mut around[self.content..(nz + 1) * self.content]);
        for (((sum, south), middle), north) in inside.iter_mut().zip(lanes(south)).zip(lanes(middle)).zip(lanes(north)) {
            *sum = add3(south, middle, north);
        }
        for (end, outside) in [(0, -1), (nz + 1, nz as isize)] {
            match self.boundary.place(outside, nz) {
                Some(z) => around.copy_within((z + 1) * self.content..(z + 2) * self.content, end * self.content),
                None => around[end * self.content..][..self.content].fill(0.0),
            }
        }
    }

    /// Arguments of the logistic functions; tanh v is 2σ(2v) − 1.
    #[inline(always)]
    fn arguments(&self, column: &[f32], arguments: &mut [f32]) {
        let nz = self.cells[2];
        for (z, cell) in column.chunks_exact(self.channels).enumerate() {
            let d = &cell[self.channels - DYNAMICS..];
            let coupling = 0.5 * ((d[8] + d[9]) + (d[10] + d[11]));
            let all = [d[0], d[1], d[2], d[3], 2.0 * d[4], 2.0 * d[5], 2.0 * d[6], coupling, d[12], d[13]];
            all.into_iter().enumerate().for_each(|(gate, argument)| arguments[gate * nz + z] = argument);
        }
    }

    /// Sine and cosine of each wave's angle at the row's first cell but for the part along Z.
    fn waves_of_row(&self, px: usize, py: usize) -> [[f32; 2]; WAVES] {
        let [nx, ny, nz] = self.cells;
        std::array::from_fn(|wave| {
            let table = &self.tables[2 * wave * (nx + ny + nz)..];
            let rotated = |[s, c]: [f32; 2], at: usize| [s * table[2 * at + 1] + c * table[2 * at], c * table[2 * at + 1] - s * table[2 * at]];
            let phase = [0, 1].map(|part| number(self.live, LIVE_PHASES + 2 * wave + part));
            rotated(rotated(phase, px), nx + py)
        })
    }

    /// Coefficients of the cells of a row, vectors running along Z.
    #[inline(always)]
    fn prepare(&self, [px, py]: [usize; 2], gates: &[f32], cells: &mut [f32]) {
        let [nx, ny, nz] = self.cells;
        let gate = |index: usize| &gates[index * nz..][..nz];
        let (decays, others) = cells.split_at_mut(4 * nz);
        let (mean_decay, others) = others.split_at_mut(nz);
        let (diffusions, others) = others.split_at_mut(3 * nz);
        let (coupling, others) = others.split_at_mut(nz);
        let (push, swell) = others.split_at_mut(nz);

        let (retention, depth) = (self.control[CONTROL_RETENTION], number(self.live, LIVE_DECAY_DEPTH));
        for (index, decay) in decays.chunks_exact_mut(nz).enumerate() {
            decay.iter_mut().zip(gate(index)).for_each(|(decay, gate)| *decay = retention * (1.0 - depth * (1.0 - gate)));
        }
        let decay = |index: usize| &decays[index * nz..][..nz];
        for (z, mean) in mean_decay.iter_mut().enumerate() {
            *mean = 0.25 * ((decay(0)[z] + decay(1)[z]) + (decay(2)[z] + decay(3)[z]));
        }
        for (axis, diffusion) in diffusions.chunks_exact_mut(nz).enumerate() {
            let (base, depth) = (number(self.live, LIVE_DIFFUSION + axis), number(self.live, LIVE_DIFFUSION_DEPTH + axis));
            diffusion.iter_mut().zip(gate(4 + axis)).for_each(|(diffusion, gate)| *diffusion = base + depth * (2.0 * gate - 1.0));
        }
        let most = number(self.live, LIVE_COUPLING);
        for (z, coupling) in coupling.iter_mut().enumerate() {
            *coupling = most * gate(8)[z] * gate(9)[z] * (2.0 * gate(7)[z] - 1.0) / 26.0;
        }

        swell.fill(0.0);
        for (index, [sine, cosine]) in self.waves_of_row(px, py).into_iter().enumerate() {
            let (table, _) = self.tables[2 * (index * (nx + ny + nz) + nx + ny)..].as_chunks::<2>();
            swell.iter_mut().zip(table).for_each(|(wave, [sine_z, cosine_z])| *wave += sine * cosine_z + cosine * sine_z);
        }
        let height = self.control[CONTROL_DRIVE] * 0.2 * number(self.live, LIVE_WAVE);
        swell.iter_mut().for_each(|wave| *wave *= height);

        // What the error does: near the centres of regions only, but for a part that is everywhere.
        let everywhere = self.control[CONTROL_ERROR_EVERYWHERE] + 0.2 * self.control[CONTROL_STRATEGIC_DRIVE];
        push.iter_mut().zip(&*swell).for_each(|(push, swell)| *push = swell + everywhere);
        let aside = from_centre(px, nx).max(from_centre(py, ny));
        if aside <= 2 {
            for (z, (push, along)) in push.iter_mut().zip(&self.from_centre).enumerate() {
                let region = self.region([px, py, z]);
                let farthest = aside.max(*along);
                let mut here = everywhere;
                for (reach, table) in [(1, CONTROL_NEAR), (2, CONTROL_FAR)] {
                    here += if farthest <= reach { self.control[table + region] } else { 0.0 };
                }
                *push = swell[z] + here;
            }
        }
    }

    fn region(&self, place: [usize; 3]) -> usize {
        place.into_iter().zip(&self.parts).fold(0, |region, (place, parts)| 4 * region + parts[place])
    }

    /// The argument of the saturation for the evolving channels of a cell, but for what few cells get.
    #[inline(always)]
    fn drive(&self, [px, py, z]: [usize; 3], columns: &[&[f32]; 9], around: &[f32], cell: &Cell, drive: &mut [f32]) {
        let (content, evolving) = (self.content, self.channels - DYNAMICS);
        let near = Near {
            here: lanes(&columns[4][z * self.channels..][..evolving]),
            west: lanes(&columns[1][z * self.channels..][..evolving]),
            east: lanes(&columns[7][z * self.channels..][..evolving]),
            south: lanes(&columns[3][z * self.channels..][..evolving]),
            north: lanes(&columns[5][z * self.channels..][..evolving]),
            below: lanes(self.end(columns[4], z as isize - 1)),
            above: lanes(self.end(columns[4], z as isize + 1)),
        };

        // Content: decay of diffusion and coupling, and what the library recalls.
        let one = lanes(&around[z * content..][..content]);
        let two = lanes(&around[(z + 1) * content..][..content]);
        let three = lanes(&around[(z + 2) * content..][..content]);
        let pull = lanes(&self.pull[self.region([px, py, z]) * content..][..content]);
        let rate = self.control[CONTROL_PULL];
        let scale = 1.0 / number(self.live, LIVE_SATURATION);
        let noise = self.control[CONTROL_DRIVE] * number(self.live, LIVE_NOISE) * NOISE_UNIT;
        let key = [self.live[LIVE_KEY], self.live[LIVE_KEY + 1]];
        let first = (((px * self.cells[1] + py) * self.cells[2] + z) * self.channels) as u32;
        let (content_drive, temporal_drive) = drive.split_at_mut(content);
        for (i, drive) in lanes_mut(content_drive).iter_mut().enumerate() {
            let spread = near.spread(i, cell.diffusion);
            let (here, pull, one, two, three) = (&near.here[i], &pull[i], &one[i], &two[i], &three[i]);
            let around = add3(one, two, three);
            *drive = each(#[inline(always)] |l| {
                let kept = here[l] + (spread[l] + cell.coupling * (around[l] - here[l]));
                cell.decay[l] * kept + (cell.push + (pull[l] - rate * here[l]))
            });
        }

        // Temporal: the register shifts.
        let previous = lanes(&columns[4][z * self.channels + content - 1..][..evolving - content]);
        for (i, drive) in lanes_mut(temporal_drive).iter_mut().enumerate() {
            let spread = near.spread(content / LANES + i, cell.diffusion);
            let (here, previous) = (&near.here[content / LANES + i], &previous[i]);
            *drive = each(#[inline(always)] |l| cell.mean_decay * (0.85 * (here[l] + spread[l]) + 0.15 * previous[l]) + cell.swell);
        }
        for (i, drive) in lanes_mut(drive).iter_mut().enumerate() {
            let first = first.wrapping_add((LANES * i) as u32);
            *drive = each(#[inline(always)] |l| scale * (drive[l] + noise * draw(first.wrapping_add(l as u32), key) as f32));
        }
    }

    /// The evolving channels of a cell of the row's own column, one step outside at most.
    #[inline(always)]
    fn end<'a>(&'a self, column: &'a [f32], z: isize) -> &'a [f32] {
        let evolving = self.channels - DYNAMICS;
        match self.boundary.place(z, self.cells[2]) {
            Some(z) => &column[z * self.channels..][..evolving],
            None => &self.zeros[..evolving],
        }
    }

    /// What few cells and channels get: imprint, echo, strategic patterns.
    fn extras(&self, place: [usize; 3], drive: &mut [f32], scale: f32) {
        let evolving = drive.len();
        let away: [f32; 3] = std::array::from_fn(|axis| (place[axis] as f32 - self.control[CONTROL_PLACE + axis]).abs());
        if away.iter().all(|away| *away < 2.5) {
            let intensity = self.control[CONTROL_INTENSITY] * 0.8f32.powi((away[0] + away[1] + away[2]).round() as i32);
            for (drive, pattern) in drive[..self.content].iter_mut().zip(&self.control[CONTROL_PATTERN..]) {
                *drive += scale * intensity * pattern;
            }
        }
        let turned = along(place[1], self.cells[1]);
        drive[evolving - 2] += scale * (self.control[CONTROL_ECHO_FORWARD] * self.along_z[place[2]] + self.control[CONTROL_ECHO_TURN] * turned);
        drive[evolving - 1] += scale * self.control[CONTROL_ECHO_MEAN];
        let weight = self.control[CONTROL_STRATEGIC_WEIGHT];
        if weight != 0.0 {
            for (drive, pattern) in drive[self.content..].iter_mut().zip(&self.control[CONTROL_STRATEGIC..]) {
                *drive = (1.0 - weight) * *drive + weight * scale * pattern;
            }
        }
    }

    /// The rules of a cell in the next cycle.
    #[inline(always)]
    fn dynamics(&self, place: [usize; 3], here: &[f32], next: &mut [f32]) {
        let (mut sums, mut squares, mut quiet) = ([0.0; 8], [0.0; 8], [0.0; 8]);
        for v in here[..self.content].as_chunks::<8>().0 {
            sums = each(#[inline(always)] |l| sums[l] + v[l]);
            squares = each(#[inline(always)] |l| squares[l] + v[l] * v[l]);
            quiet = each(#[inline(always)] |l| quiet[l] + if v[l].abs() < 0.1 { 1.0 } else { 0.0 });
        }
        let count = self.content as f32;
        let mean = fold(sums) / count;
        let variance = (fold(squares) / count - mean * mean).max(0.0);
        let step = self.control[CONTROL_STEP];
        let error = self.control[CONTROL_REGION_ERROR + self.region(place)];
        let targets = [2.0 - error * step, variance * step, 0.5 * step * fold(quiet) / count, 0.5 * step * (error * self.control[CONTROL_EXPLORE] - 0.5)];
        let rate = number(self.live, LIVE_DYNAMICS_RATE);
        let first = self.channels - DYNAMICS;
        for (half, (next, now)) in lanes_mut(&mut next[first..]).iter_mut().zip(lanes(&here[first..])).enumerate() {
            let target = each(#[inline(always)] |l| targets[2 * half + l / 4]);
            *next = each(#[inline(always)] |l| (now[l] + rate * (target[l] - now[l])).clamp(-5.0, 5.0));
        }
    }

    /// Scales the saturated field into place, and adds it up.
    #[inline(always)]
    fn finish(&self, field: &[f32], y: &mut [f32], sums: &mut [f32], pooled: &mut [f32]) {
        let evolving = self.channels - DYNAMICS;
        let saturation = number(self.live, LIVE_SATURATION);
        let (mut sum, mut size, mut square, mut temporal) = ([0.0f32; 8], [0.0f32; 8], [0.0f32; 8], [0.0f32; 8]);
        sums.fill(0.0);
        pooled.fill(0.0);
        let nz = self.cells[2];
        for (z, (field, y)) in field.chunks_exact(evolving).zip(y.chunks_exact_mut(self.channels)).enumerate() {
            let mut slice = [0.0f32; 8];
            let pooled = &mut pooled[z / self.block * self.content..][..self.content];
            let (of_content, of_temporal) = field.split_at(self.content);
            let (y_content, y_rest) = y.split_at_mut(self.content);
            let outputs = y_content.as_chunks_mut::<8>().0.iter_mut().zip(pooled.as_chunks_mut::<8>().0);
            for (field, (y, pooled)) in of_content.as_chunks::<8>().0.iter().zip(outputs) {
                let v = each(#[inline(always)] |l| saturation * field[l]);
                *y = v;
                *pooled = each(#[inline(always)] |l| pooled[l] + v[l]);
                slice = each(#[inline(always)] |l| slice[l] + v[l]);
                size = each(#[inline(always)] |l| size[l] + v[l].abs());
                square = each(#[inline(always)] |l| square[l] + v[l] * v[l]);
            }
            for (field, y) in of_temporal.as_chunks::<8>().0.iter().zip(y_rest.as_chunks_mut::<8>().0) {
                let v = each(#[inline(always)] |l| saturation * field[l]);
                *y = v;
                temporal = each(#[inline(always)] |l| temporal[l] + v[l].abs());
            }
            sum.iter_mut().zip(slice).for_each(|(sum, slice)| *sum += slice);
            if z == 0 {
                sums[3] = fold(slice);
            }
            if z + 1 == nz {
                sums[4] = fold(slice);
            }
        }
        sums[0] = fold(sum);
        sums[1] = fold(size);
        sums[2] = fold(square);
        sums[5] = fold(temporal);
    }
}
