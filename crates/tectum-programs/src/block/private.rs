//! Per-lane state in addition to registers: return addresses, phase, accumulators, a pool.

use super::mask::Mask;
use crate::evaluate::Pool;
use crate::{CLASSES, Instruction, Program};

/// The private state of a chunk's lanes; unused parts are empty.
#[derive(Debug, Default)]
pub struct Private {
    /// Open calls, and for each depth their return addresses.
    depth: Vec<u16>,
    returns: Vec<Vec<u32>>,
    /// Jumps back.
    pub turns: Vec<u32>,
    pub phase: Vec<u32>,
    pub resonance: Vec<[f32; CLASSES as usize]>,
    pool: Vec<u8>,
    pool_bytes: usize,
    pool_next: Vec<u64>,
}

impl Private {
    pub fn new(program: &Program, lanes: usize) -> Self {
        use Instruction as I;
        let uses = |wanted: fn(&Instruction) -> bool| {
            if program.instructions().iter().any(wanted) {
                lanes
            } else {
                0
            }
        };
        let pool_bytes = program.pool_bytes() as usize;
        let pools = uses(|instruction| {
            matches!(
                instruction,
                I::PoolAllocate { .. }
                    | I::PoolFree { .. }
                    | I::PoolLoad { .. }
                    | I::PoolStore { .. }
            )
        });
        Self {
            depth: vec![0; uses(|instruction| matches!(instruction, I::Call { .. }))],
            returns: Vec::new(),
            turns: vec![0; if program.has_loops() { lanes } else { 0 }],
            phase: vec![
                0;
                uses(|instruction| matches!(
                    instruction,
                    I::PhaseGet { .. } | I::PhaseAdvance { .. }
                ))
            ],
            resonance: vec![
                [0.0; CLASSES as usize];
                uses(|instruction| matches!(
                    instruction,
                    I::ResonanceAccumulate { .. } | I::UnityTest { .. }
                ))
            ],
            pool: vec![0; pools * pool_bytes],
            pool_bytes,
            pool_next: vec![0; pools],
        }
    }

    /// The initial state of each lane. Empty parts are skipped: an empty fill, at no address, may
    /// take a processor some hundred cycles.
    pub fn clear(&mut self) {
        fn fill<T: Copy>(values: &mut [T], value: T) {
            if !values.is_empty() {
                values.fill(value);
            }
        }
        fill(&mut self.depth, 0);
        fill(&mut self.turns, 0);
        fill(&mut self.phase, 0);
        fill(&mut self.resonance, [0.0; CLASSES as usize]);
        fill(&mut self.pool, 0);
        fill(&mut self.pool_next, 0);
    }

    pub fn pool(&mut self, lane: usize) -> Pool<'_> {
        let bytes = &mut self.pool[lane * self.pool_bytes..][..self.pool_bytes];
        Pool {
            bytes,
            next: &mut self.pool_next[lane],
        }
    }

    /// Stores the return address of the lanes of a mask.
    pub fn call(&mut self, mask: &Mask, to: usize) {
        for lane in mask.lanes() {
            let level = usize::from(self.depth[lane]);
            if level == self.returns.len() {
                self.returns.push(vec![0; self.depth.len()]);
            }
            self.returns[level][lane] = to as u32;
            self.depth[lane] += 1;
        }
    }

    /// Of the lanes of a mask, those with the same return address as the first, and that address;
    /// their call is finished.
    pub fn return_from(&mut self, mask: &Mask) -> (Mask, usize) {
        let place = |lane: usize| self.returns[usize::from(self.depth[lane]) - 1][lane];
        let target = place(mask.first());
        let mut is_same = vec![0; self.depth.len()];
        mask.lanes()
            .for_each(|lane| is_same[lane] = u8::from(place(lane) == target));
        let taken = mask.only(&is_same, true);
        taken.lanes().for_each(|lane| self.depth[lane] -= 1);
        (taken, target as usize)
    }
}
