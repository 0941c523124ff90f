//! One step of the field: rows along Z are distributed over threads, vectors run over channels.
//!
//! A row is made in passes over buffers that stay in L1 and L2: sums of the nine columns around it;
//! coefficients of its cells; the argument of the saturation; then tanh, sums and pooling. Every
//! row gets the same result on any thread.
//!
//! Rejected (one thread, 32³ × 64, with other work running; Zen 3): the passes over four cells at a
//! time, which keeps all in L1 but adds nine columns instead of three (11.3 ms, was 7.7); bands of
//! 8 or 16 rows along X (no difference beyond the noise). Adopted there: registers by
//! [`tectum::kernel::lanes`] instead of loops that the compiler vectorised only in part (7.7 to 5.4
//! ms). Adopted on Sapphire Rapids (the rows alone, one thread, best of 300): slices once per row
//! instead of once per cell, and prefetch of a few cache lines at a time for the next row's reads
//! and this row's writes (together 7.1 to 5.8 ms); prefetching all together stalls. Adopted there
//! (the rows alone, processor time with other work running, old over new in pairs; together 1.09 to
//! 1.16 at 32 and 64 channels, about 1 from 128 on): loops over a cell's vectors with a constant
//! count; the targets of the rules computed for all cells first, so that no cell waits for
//! another's folds and divisions; prefetch of half of the next column during the noise, and of the
//! destination during tanh. Adopted there (the rows alone on two threads, old over new in pairs:
//! 1.24 to 1.27 at 32³ × 64 and 16³ × 32, 1.25 and 1.21 at 128 and 256 channels, 1.16 at 64³ × 64,
//! 1.14 as bf16): fused multiply-add; bytes of hashes summed by dot-product instructions; columns
//! as arrays of cells with constant length, so that there are no bounds checks; sums sixteen at a
//! time, a site's sums in registers, and rule targets that are not broadcast in memory; tanh
//! without a division. Rejected there: buffers aligned to cache lines, and adjacent columns along X
//! from existing sums (no difference); tanh in the same pass as its argument (0.82 to 0.97); each
//! step of the draw for a whole cell before the next step, and the gates' arguments gathered one
//! gate at a time (slower by half or more). Within the noise there: sixteen lanes instead of eight
//! (adopted).

mod cells;
mod coefficients;

use rayon::prelude::*;
use tectum::kernel::arguments::Slices;
use tectum::kernel::lanes::run_widest;
use tectum::kernel::math::slices;
use tectum::kernel::native::{prefetch_read, simd};
use tectum::{Boundary, NativeCall};

use super::super::layout::*;
use super::super::shape::DYNAMICS;
use super::super::storage::{Storage, unpack};
use super::Evolve;
use super::number;
use cells::{ColumnSums, Drive, Finish, NeighbourSums, Row};
use coefficients::{Coefficients, GATES};

/// Rows per task, consecutive along Y.
const ROWS_PER_TASK: usize = 16;
/// Elements of tanh between two prefetches of the row's destination.
const TANH_PART: usize = 256;
/// Maximum length of an axis.
const MAX_Z: usize = 64;
/// Maximum channels of a cell.
const MAX_CHANNELS: usize = 256;

/// The column outside a field with a zero boundary.
static ZEROS: [f32; MAX_Z * MAX_CHANNELS] = [0.0; MAX_Z * MAX_CHANNELS];

/// Data that all rows of a launch share.
struct Step<'a> {
    /// The old field as stored in memory; if it is split, it begins with the plane before the
    /// first.
    x: &'a [u32],
    /// The first plane along X to compute, and the number of planes of `x` before it.
    first: usize,
    halo: usize,
    storage: Storage,
    live: &'a [u32],
    control: &'a [f32],
    tables: &'a [f32],
    pull: &'a [f32],
    cells: [usize; 3],
    channels: usize,
    content: usize,
    boundary: Boundary,
    block: usize,
    /// The quarter of each axis that contains a place.
    parts: [[usize; MAX_Z]; 3],
    /// Steps along Z to the centre of a cell's region.
    from_centre: [usize; MAX_Z],
    /// The position of a cell along Z, from −1 to 1.
    along_z: [f32; MAX_Z],
}

/// The buffers of a thread.
#[derive(Clone)]
struct Scratch {
    column_sums: ColumnSums,
    /// Sums over the nine columns of cells −1 to Z, [Z + 2][content].
    neighbour_sums: Vec<f32>,
    /// Arguments and values of the logistic functions, [GATES][Z].
    gates: [Vec<f32>; 2],
    cells: Coefficients,
    /// Arguments and values of the saturation, [Z][content + temporal].
    field: [Vec<f32>; 2],
    wide: Bf16Scratch,
}

/// Additional data of a field stored as bf16.
#[derive(Clone, Default)]
struct Bf16Scratch {
    row: Option<[usize; 2]>,
    /// The nine columns around the current row.
    columns: [Vec<f32>; 9],
    /// The row's new values.
    y: Vec<f32>,
}

/// The rows of one task, by row number over [`ROWS_PER_TASK`]: the new field, its sums, its pooled
/// sums.
type Task<'a> = (usize, ((&'a mut [u32], &'a mut [f32]), &'a mut [f32]));

pub fn native_f32(call: &NativeCall<'_>, arguments: Evolve<Slices<'_, f32>>) {
    let Evolve {
        x,
        live,
        control,
        tables,
        pull,
        y,
        rows,
        pooled,
        nx,
        ny,
        nz,
        channels,
        boundary,
        block,
        first,
        planes,
    } = arguments;
    let (x, y) = (bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
    native_bits(
        call,
        Storage::F32,
        Evolve {
            x,
            live,
            control,
            tables,
            pull,
            y,
            rows,
            pooled,
            nx,
            ny,
            nz,
            channels,
            boundary,
            block,
            first,
            planes,
        },
    );
}

pub fn native_bf16(call: &NativeCall<'_>, arguments: Evolve<Slices<'_>>) {
    native_bits(call, Storage::Bf16, arguments);
}

fn native_bits(call: &NativeCall<'_>, storage: Storage, arguments: Evolve<Slices<'_>>) {
    let Evolve {
        x,
        live,
        control,
        tables,
        pull,
        y,
        rows,
        pooled,
        nx,
        ny,
        nz,
        channels,
        boundary,
        block,
        first,
        planes,
    } = arguments;
    let cells = [nx, ny, nz];
    let content = 3 * channels / 4 - DYNAMICS;
    let halo = usize::from(planes != nx);
    let step = Step {
        x,
        first,
        halo,
        storage,
        live,
        control,
        tables,
        pull,
        cells,
        channels,
        content,
        boundary: Boundary::ALL[boundary as usize],
        block,
        parts: cells.map(|size| std::array::from_fn(|place| place / (size / 4))),
        from_centre: std::array::from_fn(|z| from_centre(z, nz)),
        along_z: std::array::from_fn(|z| normalized_coordinate(z, nz)),
    };
    let evolving = channels - DYNAMICS;
    let scratch = Scratch {
        column_sums: ColumnSums::new(nz * content),
        neighbour_sums: vec![0.0; (nz + 2) * content],
        gates: [vec![0.0; nz * GATES], vec![0.0; nz * GATES]],
        cells: Coefficients::default(),
        field: [vec![0.0; nz * evolving], vec![0.0; nz * evolving]],
        wide: Bf16Scratch::new(storage, nz * channels),
    };
    let (length, line) = (storage.words(nz * channels), nz / block * content);
    let work = |scratch: &mut Scratch, (task, ((y, rows), pooled)): Task<'_>| {
        let parts = y
            .chunks_mut(length)
            .zip(rows.chunks_mut(ROW_WORDS))
            .zip(pooled.chunks_mut(line));
        for (row, ((y, sums), pooled)) in parts.enumerate() {
            step.row(task * ROWS_PER_TASK + row, scratch, y, sums, pooled);
        }
    };
    let rows = rows.chunks_mut(ROW_WORDS * ROWS_PER_TASK);
    let made = planes * ny * length;
    let parts = y[halo * ny * length..][..made]
        .chunks_mut(length * ROWS_PER_TASK)
        .zip(rows)
        .zip(pooled.chunks_mut(line * ROWS_PER_TASK));
    let tasks: Vec<Task<'_>> = parts.enumerate().collect();
    // An element takes about as long as sixteen streamed ones.
    if call.threads_for(16 * made) > 1 {
        tasks
            .into_par_iter()
            .for_each_init(|| scratch.clone(), work);
    } else {
        let mut scratch = scratch;
        tasks.into_iter().for_each(|task| work(&mut scratch, task));
    }
}

impl Bf16Scratch {
    fn new(storage: Storage, length: usize) -> Self {
        match storage {
            Storage::F32 => Self::default(),
            Storage::Bf16 => Self {
                row: None,
                columns: [0; 9].map(|_| vec![0.0; length]),
                y: vec![0.0; length],
            },
        }
    }
}

/// The columns' elements; those shared with the previous row along Y are already loaded.
fn widen(words: &[&[u32]; 9], columns: &mut [Vec<f32>; 9], follows: bool) {
    for (words, columns) in words.chunks_exact(3).zip(columns.chunks_exact_mut(3)) {
        if follows {
            columns.rotate_left(1);
        }
        let first = if follows { 2 } else { 0 };
        words[first..]
            .iter()
            .zip(&mut columns[first..])
            .for_each(|(words, column)| unpack(words, column));
    }
}

/// Steps along an axis to the centre of a place's region.
fn from_centre(place: usize, size: usize) -> usize {
    (place % (size / 4)).abs_diff(size / 8)
}

/// The position of a place along an axis, from −1 to 1.
fn normalized_coordinate(place: usize, size: usize) -> f32 {
    2.0 * place as f32 / (size - 1) as f32 - 1.0
}

impl Step<'_> {
    fn row(
        &self,
        row: usize,
        scratch: &mut Scratch,
        y: &mut [u32],
        sums: &mut [f32],
        pooled: &mut [f32],
    ) {
        let [_, ny, nz] = self.cells;
        let (px, py) = (self.first + row / ny, row % ny);
        let Scratch {
            column_sums,
            neighbour_sums,
            gates: [arguments, gates],
            cells,
            field: [drive, field],
            wide,
        } = scratch;
        let Bf16Scratch {
            row: before,
            columns,
            y: wide_y,
        } = wide;
        // The only column that the next row reads from memory: half of it is prefetched during the
        // noise, the rest during the argument.
        let length = self.storage.words(nz * self.channels);
        let next = self
            .x
            .get(((self.halo + 1) * ny + row + 2) * length..)
            .and_then(|rest| rest.get(..length))
            .unwrap_or_default();
        let next = next.split_at(next.len() / 2);
        let columns = match self.storage {
            Storage::F32 => self.words(px, py).map(bytemuck::cast_slice),
            Storage::Bf16 => {
                let follows = py > 0 && *before == Some([px, py - 1]);
                *before = Some([px, py]);
                widen(&self.words(px, py), columns, follows);
                columns.each_ref().map(|column| &column[..])
            }
        };
        let here = Row::new(self, px, py, columns);
        run_widest(
            &[self.content],
            NeighbourSums {
                row: &here,
                column_sums,
                neighbour_sums,
            },
        );
        simd(
            #[inline(always)]
            || self.arguments(here.column(), arguments),
        );
        slices::sigmoid(arguments, gates);
        simd(
            #[inline(always)]
            || {
                self.prepare([px, py], gates, cells);
                here.draw(drive, next.0);
            },
        );
        run_widest(
            &[self.content, self.channels / 4],
            Drive {
                row: &here,
                cells,
                neighbour_sums,
                drive,
                ahead: next.1,
            },
        );
        here.extras(drive);
        // One part at a time, with a prefetch of its destination: prefetching all together would
        // stall.
        let parts = drive.len().div_ceil(TANH_PART);
        for (part, (drive, field)) in drive
            .chunks(TANH_PART)
            .zip(field.chunks_mut(TANH_PART))
            .enumerate()
        {
            prefetch_read(&y[part * length / parts..(part + 1) * length / parts]);
            slices::tanh(drive, field);
        }
        match self.storage {
            Storage::F32 => Finish {
                row: &here,
                saturation: number(self.live, LIVE_SATURATION),
                field,
                y: bytemuck::cast_slice_mut(y),
                sums,
                pooled,
            }
            .fold(),
            Storage::Bf16 => {
                simd(
                    #[inline(always)]
                    || here.stochastic_round(field),
                );
                Finish {
                    row: &here,
                    saturation: 1.0,
                    field,
                    y: wide_y,
                    sums,
                    pooled,
                }
                .fold();
                simd(
                    #[inline(always)]
                    || here.pack_bf16(wide_y, y),
                );
            }
        }
    }

    /// The nine columns of cells around a row in memory order: X varies slowest.
    fn words(&self, px: usize, py: usize) -> [&[u32]; 9] {
        let [nx, ny, nz] = self.cells;
        let length = self.storage.words(nz * self.channels);
        std::array::from_fn(|index| {
            let plane = px as isize + index as isize / 3 - 1;
            let x = if self.halo == 0 {
                self.boundary.place(plane, nx)
            } else {
                Some((plane + self.halo as isize - self.first as isize) as usize)
            };
            let y = self
                .boundary
                .place(py as isize + index as isize % 3 - 1, ny);
            x.zip(y)
                .map_or(&bytemuck::cast_slice(&ZEROS)[..length], |(x, y)| {
                    &self.x[(x * ny + y) * length..][..length]
                })
        })
    }

    /// 1 over the limit of the saturation.
    fn scale(&self) -> f32 {
        1.0 / number(self.live, LIVE_SATURATION)
    }

    #[inline(always)]
    fn region(&self, place: [usize; 3]) -> usize {
        place
            .into_iter()
            .zip(&self.parts)
            .fold(0, |region, (place, parts)| 4 * region + parts[place])
    }
}
