//! The memory of a chunk of lanes: buffers and shared memory, as words.
//!
//! A buffer that lanes write only at their own elements is split among tasks. Other written buffers
//! are atomic words, so that lanes may race, as programs are allowed to, without undefined
//! behaviour: bytes are then those of any of the stores, as `docs/programs.md` says.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use tectum::kernel::native::stream;

use super::mask::Mask;
use super::register_file::Bits;
use crate::evaluate::within;
use crate::{FaultKind, Type};

/// The words of a memory, and how they may be accessed.
pub enum Words<'a> {
    /// Read by all tasks.
    Read(&'a [u32]),
    /// This task's part: only it reads and writes these.
    Own(&'a mut [u32]),
    /// Read and written by all tasks.
    Shared(&'a [AtomicU32]),
}

/// A buffer or shared memory, as one task sees it.
pub struct Memory<'a> {
    pub words: Words<'a>,
    /// Bytes of the whole.
    pub bytes: u64,
    /// Offset of the words, in bytes of the whole.
    pub start: u64,
    /// Whether own elements are stored past the caches.
    pub streams: bool,
}

/// Which bytes the lanes access.
#[derive(Clone, Copy)]
pub enum Offsets<'a> {
    /// Lane `i` its own element; the first lane's element has this number.
    Own(u64),
    /// All the same.
    Same(u64),
    /// Each lane of the mask's range its own.
    Each(&'a [u64]),
}

/// Why a lane, by its index in the chunk, could not continue.
pub type LaneFault = (usize, FaultKind);

/// What happens to accesses that fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultMode {
    /// They are reported.
    Reported,
    /// Loads give 0, stores do nothing, the low bits of misaligned addresses do not count.
    Ignored,
}

/// Words that can be read and written individually.
trait Cells {
    fn get(&self, index: usize) -> u32;
    /// Sets the bits of `mask`.
    fn set(&mut self, index: usize, mask: u32, bits: u32);

    /// The words, if no other task writes them.
    fn plain(&self) -> Option<&[u32]> {
        None
    }

    /// As [`Cells::plain`], to write.
    fn plain_mut(&mut self) -> Option<&mut [u32]> {
        None
    }
}

impl Cells for &[u32] {
    #[inline(always)]
    fn get(&self, index: usize) -> u32 {
        self[index]
    }

    fn set(&mut self, _: usize, _: u32, _: u32) {
        unreachable!("invariant: the check refuses stores to what is declared `read`")
    }

    fn plain(&self) -> Option<&[u32]> {
        Some(self)
    }
}

impl Cells for &mut [u32] {
    #[inline(always)]
    fn get(&self, index: usize) -> u32 {
        self[index]
    }

    #[inline(always)]
    fn set(&mut self, index: usize, mask: u32, bits: u32) {
        self[index] = self[index] & !mask | bits;
    }

    fn plain(&self) -> Option<&[u32]> {
        Some(self)
    }

    fn plain_mut(&mut self) -> Option<&mut [u32]> {
        Some(self)
    }
}

impl Cells for &[AtomicU32] {
    #[inline(always)]
    fn get(&self, index: usize) -> u32 {
        self[index].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set(&mut self, index: usize, mask: u32, bits: u32) {
        if mask == u32::MAX {
            self[index].store(bits, Ordering::Relaxed);
        } else {
            let changed = |word: u32| Some(word & !mask | bits);
            let _ = self[index].fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
        }
    }
}

/// The value of `width` bytes at a byte, both multiples of it.
#[inline(always)]
fn read(cells: &impl Cells, at: usize, width: usize) -> u64 {
    let shift = 8 * (at % 4);
    match width {
        1 => u64::from(cells.get(at / 4) >> shift & 0xff),
        2 => u64::from(cells.get(at / 4) >> shift & 0xffff),
        4 => u64::from(cells.get(at / 4)),
        _ => u64::from(cells.get(at / 4)) | u64::from(cells.get(at / 4 + 1)) << 32,
    }
}

#[inline(always)]
fn write(cells: &mut impl Cells, at: usize, width: usize, bits: u64) {
    let shift = 8 * (at % 4);
    match width {
        1 => cells.set(at / 4, 0xff << shift, (bits as u32) << shift),
        2 => cells.set(at / 4, 0xffff << shift, (bits as u32) << shift),
        4 => cells.set(at / 4, u32::MAX, bits as u32),
        _ => {
            cells.set(at / 4, u32::MAX, bits as u32);
            cells.set(at / 4 + 1, u32::MAX, (bits >> 32) as u32);
        }
    }
}

/// One access of a chunk: the type, the handling of faults, and the lanes.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    pub ty: Type,
    pub faults: FaultMode,
    pub mask: &'a Mask,
}

impl<'m> Memory<'m> {
    /// This many elements of 32 bits from one on, if all exist and no task writes them.
    pub fn view(&self, first: u64, count: usize) -> Option<&'m [u32]> {
        let Words::Read(words) = self.words else {
            return None;
        };
        let first = usize::try_from(first).ok()?;
        words
            .get(..self.bytes as usize / 4)?
            .get(first..)?
            .get(..count)
    }

    /// The memory's words, taken from it, with the offset of the lanes' own words, if stores go
    /// there unconverted and all exist.
    pub fn take_own(&mut self, first: u64, lanes: usize) -> Option<(&'m mut [u32], Range<usize>)> {
        let begin = usize::try_from(first)
            .ok()?
            .checked_sub(self.start as usize / 4)?;
        let range = begin..begin.checked_add(lanes)?;
        match &mut self.words {
            Words::Own(words)
                if !self.streams
                    && range.end <= words.len()
                    && (first + lanes as u64) * 4 <= self.bytes =>
            {
                Some((std::mem::take(words), range))
            }
            _ => None,
        }
    }

    /// Loads for the lanes of a mask into `out`, which is the mask's range of lanes.
    pub fn load<B: Bits>(
        &mut self,
        access: &Access<'_>,
        offsets: Offsets<'_>,
        out: &mut [B],
    ) -> Result<(), LaneFault> {
        let (start, bytes) = (self.start, self.bytes);
        match &mut self.words {
            Words::Read(words) => load(words, [start, bytes], access, offsets, out),
            Words::Own(words) => load(words, [start, bytes], access, offsets, out),
            Words::Shared(words) => load(words, [start, bytes], access, offsets, out),
        }
    }

    /// Stores for the lanes of a mask from `values`, which is the mask's range of lanes.
    pub fn store<B: Bits>(
        &mut self,
        access: &Access<'_>,
        offsets: Offsets<'_>,
        values: &[B],
    ) -> Result<(), LaneFault> {
        let (start, bytes) = (self.start, self.bytes);
        if let (true, Words::Own(words), Offsets::Own(number), true) =
            (self.streams, &mut self.words, offsets, access.mask.is_all())
        {
            let width = size_of::<B>();
            let part = words
                .get_mut((number as usize * width - start as usize) / 4..)
                .unwrap_or_default();
            let values = bytemuck::cast_slice(values);
            let count = part.len().min(values.len());
            // SAFETY: the run of a block executes a fence after its last chunk where memory
            // streams, before the task ends.
            unsafe { stream(&mut part[..count], &values[..count]) };
            return Ok(());
        }
        match &mut self.words {
            Words::Read(words) => store(words, [start, bytes], access, offsets, values),
            Words::Own(words) => store(words, [start, bytes], access, offsets, values),
            Words::Shared(words) => store(words, [start, bytes], access, offsets, values),
        }
    }
}

/// Whether each offset is one width after the previous one.
fn is_run(offsets: &[u64], width: u64) -> bool {
    let first = offsets[0];
    let last = offsets[offsets.len() - 1];
    last.wrapping_sub(first) == width * (offsets.len() as u64 - 1)
        && offsets.iter().zip(0u64..).fold(true, |all, (&at, i)| {
            all & (at == first.wrapping_add(width * i))
        })
}

fn is_same(offsets: &[u64]) -> bool {
    let first = offsets[0];
    first == offsets[offsets.len() - 1] && offsets.iter().fold(true, |all, &at| all & (at == first))
}

/// The byte at which a lane's access begins, if it is valid.
#[inline(always)]
fn place(bytes: u64, at: u64, ty: Type, faults: FaultMode) -> Result<Option<usize>, FaultKind> {
    match within(bytes, at, ty) {
        Ok(at) => Ok(Some(at)),
        Err(kind) if faults == FaultMode::Reported => Err(kind),
        Err(FaultKind::Misaligned { .. }) => Ok(Some((at - at % ty.bytes()) as usize)),
        Err(_) => Ok(None),
    }
}

fn load<B: Bits>(
    cells: &impl Cells,
    [start, bytes]: [u64; 2],
    access: &Access<'_>,
    offsets: Offsets<'_>,
    out: &mut [B],
) -> Result<(), LaneFault> {
    let (ty, width, range) = (access.ty, access.ty.bytes(), access.mask.range());
    match offsets {
        Offsets::Own(number) => {
            let first = number + range.start as u64;
            let count = (bytes / width).saturating_sub(first).min(out.len() as u64) as usize;
            // Lanes of a launch's last block may begin beyond the buffer.
            if count > 0 {
                run(
                    cells,
                    (first * width).wrapping_sub(start) as usize,
                    width,
                    &mut out[..count],
                );
            }
            out[count..].fill(B::default());
        }
        Offsets::Same(at) => {
            let found = place(bytes, at, ty, access.faults).map_err(|kind| (range.start, kind))?;
            out.fill(found.map_or(B::default(), |at| {
                B::of(read(cells, at - start as usize, width as usize))
            }));
        }
        Offsets::Each(all)
            if access.mask.is_all()
                && is_run(all, width)
                && within(bytes, all[all.len() - 1], ty).is_ok()
                && all[0] <= all[all.len() - 1] =>
        {
            run(cells, (all[0] - start) as usize, width, out);
        }
        Offsets::Each(all) if is_same(all) => {
            return load(cells, [start, bytes], access, Offsets::Same(all[0]), out);
        }
        Offsets::Each(all) => {
            for lane in access.mask.lanes() {
                let index = lane - range.start;
                let found =
                    place(bytes, all[index], ty, access.faults).map_err(|kind| (lane, kind))?;
                out[index] = found.map_or(B::default(), |at| {
                    B::of(read(cells, at - start as usize, width as usize))
                });
            }
        }
    }
    Ok(())
}

/// Loads consecutive values, the first at a byte.
fn run<B: Bits>(cells: &impl Cells, first: usize, width: u64, out: &mut [B]) {
    let width = width as usize;
    match (cells.plain(), width) {
        (Some(words), 1) => {
            let bytes = &bytemuck::cast_slice::<u32, u8>(words)[first..];
            out.iter_mut()
                .zip(bytes)
                .for_each(|(out, &byte)| *out = B::of(u64::from(byte)));
        }
        (Some(words), 2) => {
            let halves = bytemuck::cast_slice::<u32, u8>(words)[first..]
                .as_chunks()
                .0;
            out.iter_mut()
                .zip(halves)
                .for_each(|(out, half)| *out = B::of(u64::from(u16::from_le_bytes(*half))));
        }
        (Some(words), _) => {
            let count = out.len() * width / 4;
            bytemuck::cast_slice_mut::<B, u32>(out).copy_from_slice(&words[first / 4..][..count]);
        }
        (None, _) => out
            .iter_mut()
            .enumerate()
            .for_each(|(i, out)| *out = B::of(read(cells, first + width * i, width))),
    }
}

fn store<B: Bits>(
    cells: &mut impl Cells,
    [start, bytes]: [u64; 2],
    access: &Access<'_>,
    offsets: Offsets<'_>,
    values: &[B],
) -> Result<(), LaneFault> {
    let (ty, width, range) = (access.ty, access.ty.bytes(), access.mask.range());
    match offsets {
        Offsets::Own(number) => {
            let first = number + range.start as u64;
            let count = (bytes / width)
                .saturating_sub(first)
                .min(values.len() as u64) as usize;
            let at = (first * width).wrapping_sub(start) as usize;
            if count == 0 {
                return Ok(());
            }
            if access.mask.is_all() {
                put_run(cells, at, width, &values[..count]);
            } else {
                for lane in access
                    .mask
                    .lanes()
                    .map(|lane| lane - range.start)
                    .take_while(|lane| *lane < count)
                {
                    write(
                        cells,
                        at + lane * width as usize,
                        width as usize,
                        values[lane].bits(),
                    );
                }
            }
        }
        Offsets::Same(at) => {
            let found = place(bytes, at, ty, access.faults).map_err(|kind| (range.start, kind))?;
            if let (Some(at), Some(value)) = (found, values.last()) {
                write(cells, at - start as usize, width as usize, value.bits());
            }
        }
        Offsets::Each(all)
            if access.mask.is_all()
                && is_run(all, width)
                && within(bytes, all[all.len() - 1], ty).is_ok()
                && all[0] <= all[all.len() - 1] =>
        {
            put_run(cells, (all[0] - start) as usize, width, values);
        }
        Offsets::Each(all) => {
            for lane in access.mask.lanes() {
                let index = lane - range.start;
                if let Some(at) =
                    place(bytes, all[index], ty, access.faults).map_err(|kind| (lane, kind))?
                {
                    write(
                        cells,
                        at - start as usize,
                        width as usize,
                        values[index].bits(),
                    );
                }
            }
        }
    }
    Ok(())
}

/// Stores consecutive values, the first at a byte.
fn put_run<B: Bits>(cells: &mut impl Cells, first: usize, width: u64, values: &[B]) {
    let width = width as usize;
    if let (Some(words), true) = (cells.plain_mut(), width == size_of::<B>()) {
        let values = bytemuck::cast_slice::<B, u32>(values);
        return words[first / 4..][..values.len()].copy_from_slice(values);
    }
    values
        .iter()
        .enumerate()
        .for_each(|(i, value)| write(cells, first + width * i, width, value.bits()));
}
