//! Coefficients of the cells of a row, shared by all channels: vectors run along Z.

use super::super::super::layout::*;
use super::super::super::shape::DYNAMICS;
use super::super::super::waves::WAVES;
use super::super::number;
use super::{MAX_Z, Step, from_centre};

/// Arguments of the logistic function of a cell: four decays, three diffusions and the coupling's
/// weight twice, two plasticities. Those of the decays come first, \[Z\]\[4\], then those of each
/// other gate, \[Z\].
pub const GATES: usize = 10;
/// For temporal channels, the parts kept from the same channel and taken from the previous channel.
const RETAINED_FRACTION: f32 = 0.85;
const SHIFTED_FRACTION: f32 = 0.15;

/// Coefficients of the row's cells, each \[Z\]; all except diffusion and coupling are divided by
/// the limit of the saturation.
#[derive(Clone)]
pub struct Coefficients {
    /// For each cell, for the channels that are 0, 1, 2 and 3 modulo 4.
    pub decay: [[f32; 4]; MAX_Z],
    /// The mean decay for the same channel and for the previous channel.
    pub register: [[f32; MAX_Z]; 2],
    /// Along X, Y and Z.
    pub diffusion: [[f32; MAX_Z]; 3],
    pub coupling: [f32; MAX_Z],
    /// The terms added to content, and to temporal channels.
    pub push: [f32; MAX_Z],
    pub wave_term: [f32; MAX_Z],
}

impl Default for Coefficients {
    fn default() -> Self {
        let none = [0.0; MAX_Z];
        Self {
            decay: [[0.0; 4]; MAX_Z],
            register: [none; 2],
            diffusion: [none; 3],
            coupling: none,
            push: none,
            wave_term: none,
        }
    }
}

impl Step<'_> {
    /// Arguments of the logistic functions; tanh v is 2σ(2v) − 1.
    #[inline(always)]
    pub fn arguments(&self, column: &[f32], arguments: &mut [f32]) {
        let nz = self.cells[2];
        let (decays, others) = arguments.split_at_mut(4 * nz);
        let cells = column
            .chunks_exact(self.channels)
            .filter_map(|cell| cell.last_chunk::<DYNAMICS>());
        for (z, (d, decays)) in cells.zip(decays.as_chunks_mut::<4>().0).enumerate() {
            *decays = [d[0], d[1], d[2], d[3]];
            let coupling = 0.5 * ((d[8] + d[9]) + (d[10] + d[11]));
            let all = [2.0 * d[4], 2.0 * d[5], 2.0 * d[6], coupling, d[12], d[13]];
            all.into_iter()
                .enumerate()
                .for_each(|(gate, argument)| others[gate * nz + z] = argument);
        }
    }

    /// Sine and cosine of each wave's angle at the row's first cell, without the part along Z.
    fn waves_of_row(&self, px: usize, py: usize) -> [[f32; 2]; WAVES] {
        let [nx, ny, nz] = self.cells;
        std::array::from_fn(|wave| {
            let table = &self.tables[2 * wave * (nx + ny + nz)..];
            let rotated = |[s, c]: [f32; 2], at: usize| {
                [
                    s * table[2 * at + 1] + c * table[2 * at],
                    c * table[2 * at + 1] - s * table[2 * at],
                ]
            };
            let phase = [0, 1].map(|part| number(self.live, LIVE_PHASES + 2 * wave + part));
            rotated(rotated(phase, px), nx + py)
        })
    }

    /// Coefficients of the cells of a row, vectors running along Z.
    #[inline(always)]
    pub fn prepare(&self, [px, py]: [usize; 2], gates: &[f32], cells: &mut Coefficients) {
        let [nx, ny, nz] = self.cells;
        let (decay_gates, gates) = gates.split_at(4 * nz);
        let gate = |index: usize| &gates[index * nz..][..nz];
        let Coefficients {
            decay: decays,
            register: [stays, taken],
            diffusion,
            coupling,
            push,
            wave_term,
        } = cells;

        let scale = self.scale();
        let (retention, depth) = (
            scale * self.control[CONTROL_RETENTION],
            number(self.live, LIVE_DECAY_DEPTH),
        );
        decays
            .as_flattened_mut()
            .iter_mut()
            .zip(decay_gates)
            .for_each(|(decay, gate)| *decay = retention * (1.0 - depth * (1.0 - gate)));
        for ((stays, taken), [a, b, c, d]) in stays.iter_mut().zip(taken).zip(decays).take(nz) {
            let mean = 0.25 * ((*a + *b) + (*c + *d));
            (*stays, *taken) = (RETAINED_FRACTION * mean, SHIFTED_FRACTION * mean);
        }
        for (axis, diffusion) in diffusion.iter_mut().enumerate() {
            let (base, depth) = (
                number(self.live, LIVE_DIFFUSION + axis),
                number(self.live, LIVE_DIFFUSION_DEPTH + axis),
            );
            diffusion
                .iter_mut()
                .zip(gate(axis))
                .for_each(|(diffusion, gate)| *diffusion = base + depth * (2.0 * gate - 1.0));
        }
        let most = number(self.live, LIVE_COUPLING);
        for (((coupling, weight), first), second) in
            coupling.iter_mut().zip(gate(3)).zip(gate(4)).zip(gate(5))
        {
            *coupling = most * first * second * (2.0 * weight - 1.0) / 26.0;
        }

        let (push, wave_term) = (&mut push[..nz], &mut wave_term[..nz]);
        wave_term.fill(0.0);
        for (index, [sine, cosine]) in self.waves_of_row(px, py).into_iter().enumerate() {
            let (table, _) = self.tables[2 * (index * (nx + ny + nz) + nx + ny)..].as_chunks::<2>();
            wave_term
                .iter_mut()
                .zip(table)
                .for_each(|(wave, [sine_z, cosine_z])| *wave += sine * cosine_z + cosine * sine_z);
        }
        let height = scale * self.control[CONTROL_DRIVE] * 0.2 * number(self.live, LIVE_WAVE);
        wave_term.iter_mut().for_each(|wave| *wave *= height);

        // The effect of the error: only near the centres of regions, except for a part that is
        // everywhere.
        let everywhere = scale
            * (self.control[CONTROL_ERROR_EVERYWHERE]
                + 0.2 * self.control[CONTROL_STRATEGIC_DRIVE]);
        push.iter_mut()
            .zip(&*wave_term)
            .for_each(|(push, wave_term)| *push = wave_term + everywhere);
        let aside = from_centre(px, nx).max(from_centre(py, ny));
        if aside <= 2 {
            for (z, (push, along)) in push.iter_mut().zip(&self.from_centre).enumerate() {
                let region = self.region([px, py, z]);
                let farthest = aside.max(*along);
                let mut here = everywhere;
                for (reach, table) in [(1, CONTROL_NEAR), (2, CONTROL_FAR)] {
                    here += if farthest <= reach {
                        scale * self.control[table + region]
                    } else {
                        0.0
                    };
                }
                *push = wave_term[z] + here;
            }
        }
    }
}
