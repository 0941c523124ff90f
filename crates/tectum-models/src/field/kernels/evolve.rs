//! One step of the field: rows along Z are shared over threads, vectors run over channels.
//!
//! A row is made in four passes over buffers that stay in L1: sums of the nine columns around it; coefficients of its cells; the
//! argument of the saturation; then tanh, sums and pooling. Every row is made alike whichever thread makes it.

use rayon::prelude::*;
use tectum::kernel::math::slices;
use tectum::kernel::native::simd;
use tectum::{Boundary, NativeCall};

use super::super::draw::{NOISE_UNIT, draw};
use super::super::layout::*;
use super::super::shape::DYNAMICS;
use super::super::waves::WAVES;
use super::number;

/// Arguments of the logistic function of a cell: four decays, three diffusions and the coupling's weight twice, two plasticities.
const GATES: usize = 10;
/// Rows that a thread takes at once.
const ROWS_PER_TASK: usize = 4;

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
}

/// The buffers of a thread.
#[derive(Clone)]
struct Scratch {
    /// Sums over the nine columns of cells −1 to Z, [Z + 2][content].
    columns: Vec<f32>,
    /// Arguments and values of the logistic functions, [Z][GATES].
    gates: [Vec<f32>; 2],
    /// Arguments and values of the saturation, [Z][content + temporal].
    field: [Vec<f32>; 2],
}

/// Some rows by their number over [`ROWS_PER_TASK`]: the new field, its sums, its pooled sums.
type Task<'a> = (usize, ((&'a mut [f32], &'a mut [f32]), &'a mut [f32]));

/// Coefficients of a cell.
struct Cell {
    decay: [f32; 8],
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
    let step = Step { x, live, control, tables, pull, cells, channels, content, boundary: Boundary::ALL[call.size(4)], block, zeros };
    let evolving = channels - DYNAMICS;
    let scratch = Scratch {
        columns: vec![0.0; (nz + 2) * content],
        gates: [vec![0.0; nz * GATES], vec![0.0; nz * GATES]],
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

/// The sum of eight lanes, in a tree.
#[inline(always)]
pub fn fold(lanes: [f32; 8]) -> f32 {
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

impl Step<'_> {
    fn row(&self, row: usize, scratch: &mut Scratch, y: &mut [f32], sums: &mut [f32], pooled: &mut [f32]) {
        let [_, ny, nz] = self.cells;
        let (px, py) = (row / ny, row % ny);
        let columns = self.columns(px, py);
        let Scratch { columns: around, gates: [arguments, gates], field: [drive, field] } = scratch;
        simd(
            #[inline(always)]
            || {
                self.add_columns(&columns, around);
                self.arguments(columns[4], arguments);
            },
        );
        slices::sigmoid(arguments, gates);
        let waves = self.waves_of_row(px, py);
        let scale = 1.0 / number(self.live, LIVE_SATURATION);
        for z in 0..nz {
            let cell = self.prepare([px, py, z], &gates[z * GATES..][..GATES], &waves);
            let drive = &mut drive[z * (self.channels - DYNAMICS)..][..self.channels - DYNAMICS];
            simd(
                #[inline(always)]
                || self.drive(row, z, &columns, around, &cell, drive, scale),
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

    /// Sums over the columns at each cell of the row and one beyond either end.
    #[inline(always)]
    fn add_columns(&self, columns: &[&[f32]; 9], around: &mut [f32]) {
        let nz = self.cells[2];
        for z in 0..nz {
            let part: [&[f32]; 9] = columns.map(|column| &column[z * self.channels..][..self.content]);
            for (i, sum) in around[(z + 1) * self.content..][..self.content].iter_mut().enumerate() {
                let [a, b, c, d, e, f, g, h, last] = part.map(|part| part[i]);
                *sum = (((a + b) + (c + d)) + ((e + f) + (g + h))) + last;
            }
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
        for (cell, arguments) in column.chunks_exact(self.channels).zip(arguments.chunks_exact_mut(GATES)) {
            let d = &cell[self.channels - DYNAMICS..];
            arguments[..4].copy_from_slice(&d[..4]);
            (4..7).for_each(|axis| arguments[axis] = 2.0 * d[axis]);
            arguments[7] = 0.5 * ((d[8] + d[9]) + (d[10] + d[11]));
            arguments[8..10].copy_from_slice(&d[12..14]);
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

    fn prepare(&self, [px, py, pz]: [usize; 3], gates: &[f32], waves: &[[f32; 2]; WAVES]) -> Cell {
        let [nx, ny, nz] = self.cells;
        let depth = number(self.live, LIVE_DECAY_DEPTH);
        let decay: [f32; 8] = std::array::from_fn(|s| self.control[CONTROL_RETENTION] * (1.0 - depth * (1.0 - gates[s % 4])));
        let diffusion = std::array::from_fn(|axis| {
            number(self.live, LIVE_DIFFUSION + axis) + number(self.live, LIVE_DIFFUSION_DEPTH + axis) * (2.0 * gates[4 + axis] - 1.0)
        });
        let mut wave = 0.0;
        for (index, [sine, cosine]) in waves.iter().enumerate() {
            let at = 2 * (index * (nx + ny + nz) + nx + ny + pz);
            wave += sine * self.tables[at + 1] + cosine * self.tables[at];
        }
        let swell = self.control[CONTROL_DRIVE] * 0.2 * number(self.live, LIVE_WAVE) * wave;

        // What the error does here.
        let part = self.cells.map(|size| size / 4);
        let farthest = [px, py, pz].into_iter().zip(part).map(|(place, part)| (place % part).abs_diff(part / 2)).max().unwrap_or(0);
        let region = self.region([px, py, pz]);
        let mut push = self.control[CONTROL_ERROR_EVERYWHERE] + 0.2 * self.control[CONTROL_STRATEGIC_DRIVE];
        for (reach, table) in [(1, CONTROL_NEAR), (2, CONTROL_FAR)] {
            push += if farthest <= reach { self.control[table + region] } else { 0.0 };
        }
        Cell {
            decay,
            mean_decay: 0.25 * ((decay[0] + decay[1]) + (decay[2] + decay[3])),
            diffusion,
            coupling: number(self.live, LIVE_COUPLING) * gates[8] * gates[9] * (2.0 * gates[7] - 1.0) / 26.0,
            push: swell + push,
            swell,
        }
    }

    fn region(&self, place: [usize; 3]) -> usize {
        place.into_iter().zip(self.cells).fold(0, |region, (place, size)| 4 * region + place / (size / 4))
    }

    /// The argument of the saturation for the evolving channels of a cell, but for what few cells get.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "one leaf of a loop; a struct would be made anew for every cell")]
    fn drive(&self, row: usize, z: usize, columns: &[&[f32]; 9], around: &[f32], cell: &Cell, drive: &mut [f32], scale: f32) {
        let (content, evolving) = (self.content, self.channels - DYNAMICS);
        let nz = self.cells[2];
        let at = |index: usize, z: usize| &columns[index][z * self.channels..][..evolving];
        let end = |outside: isize| self.boundary.place(outside, nz).map_or(&self.zeros[..evolving], |z| at(4, z));
        let (here, west, east, south, north) = (at(4, z), at(1, z), at(7, z), at(3, z), at(5, z));
        let (below, above) = (end(z as isize - 1), end(z as isize + 1));
        let key = [self.live[LIVE_KEY], self.live[LIVE_KEY + 1]];
        let first = ((row * nz + z) * self.channels) as u32;
        let noise = self.control[CONTROL_DRIVE] * number(self.live, LIVE_NOISE) * NOISE_UNIT;
        let [dx, dy, dz] = cell.diffusion;
        let spread = |i: usize| {
            let twice = 2.0 * here[i];
            (dx * ((west[i] + east[i]) - twice) + dy * ((south[i] + north[i]) - twice)) + dz * ((below[i] + above[i]) - twice)
        };

        // Content: decay of diffusion and coupling, and what the library recalls.
        let line = |z: usize| &around[z * content..][..content];
        let (one, two, three) = (line(z), line(z + 1), line(z + 2));
        let place = [row / self.cells[1], row % self.cells[1], z];
        let pull = &self.pull[self.region(place) * content..][..content];
        let rate = self.control[CONTROL_PULL];
        let (content_drive, temporal_drive) = drive.split_at_mut(content);
        for (i, drive) in content_drive.iter_mut().enumerate() {
            let neighbours = ((one[i] + two[i]) + three[i]) - here[i];
            let kept = here[i] + (spread(i) + cell.coupling * neighbours);
            *drive = cell.decay[i % 8] * kept + (cell.push + (pull[i] - rate * here[i]));
        }

        // Temporal: the register shifts.
        for (i, drive) in temporal_drive.iter_mut().enumerate() {
            let i = content + i;
            *drive = cell.mean_decay * (0.85 * (here[i] + spread(i)) + 0.15 * here[i - 1]) + cell.swell;
        }
        for (i, drive) in drive.iter_mut().enumerate() {
            *drive = scale * (*drive + noise * draw(first.wrapping_add(i as u32), key) as f32);
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
        let along = |axis: usize| 2.0 * place[axis] as f32 / (self.cells[axis] - 1) as f32 - 1.0;
        drive[evolving - 2] += scale * (self.control[CONTROL_ECHO_FORWARD] * along(2) + self.control[CONTROL_ECHO_TURN] * along(1));
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
            for lane in 0..8 {
                sums[lane] += v[lane];
                squares[lane] += v[lane] * v[lane];
                quiet[lane] += if v[lane].abs() < 0.1 { 1.0 } else { 0.0 };
            }
        }
        let count = self.content as f32;
        let mean = fold(sums) / count;
        let variance = (fold(squares) / count - mean * mean).max(0.0);
        let step = self.control[CONTROL_STEP];
        let error = self.control[CONTROL_REGION_ERROR + self.region(place)];
        let targets = [2.0 - error * step, variance * step, 0.5 * step * fold(quiet) / count, 0.5 * step * (error * self.control[CONTROL_EXPLORE] - 0.5)];
        let rate = number(self.live, LIVE_DYNAMICS_RATE);
        let first = self.channels - DYNAMICS;
        for (i, (next, now)) in next[first..].iter_mut().zip(&here[first..]).enumerate() {
            *next = (now + rate * (targets[i / 4] - now)).clamp(-5.0, 5.0);
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
                for lane in 0..8 {
                    let v = saturation * field[lane];
                    y[lane] = v;
                    pooled[lane] += v;
                    slice[lane] += v;
                    size[lane] += v.abs();
                    square[lane] += v * v;
                }
            }
            for (field, y) in of_temporal.as_chunks::<8>().0.iter().zip(y_rest.as_chunks_mut::<8>().0) {
                for lane in 0..8 {
                    let v = saturation * field[lane];
                    y[lane] = v;
                    temporal[lane] += v.abs();
                }
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
