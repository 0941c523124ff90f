//! The registers of a chunk of lanes: for each register a column with one value a lane.
//!
//! A register has a column of words for types up to 32 bits and one of 64 bits for the others, if
//! the program uses them: the check knows which of the two a read uses. A result is written to a
//! spare column, which then becomes the register's; so an instruction may read the register that it
//! writes, and no loop writes what it reads. A register that was loaded from consecutive words of a
//! buffer without writers is a view of them: nothing is copied.

use super::constants::constants;
use super::mask::Mask;
use crate::{Predicate, Program, Register, Type, Write};

/// A word that a column holds: bits of a value, those above its type's width 0.
pub trait Bits: bytemuck::Pod + Default {
    fn bits(self) -> u64;
    fn of(bits: u64) -> Self;
    fn family(kept: &mut RegisterStorage) -> &mut Family<Self>;
    fn column<'c>(columns: &'c RegisterFile<'_>, register: Register) -> &'c [Self];
    /// The words that a register is a view of, taken from it.
    fn take_view<'m>(columns: &mut RegisterFile<'m>, register: Register) -> Option<&'m [Self]>;
}

/// Marks a register without a column: if all 256 registers have one, all of 0 to 255 are valid
/// indices.
const NO_COLUMN: u16 = u16::MAX;

/// The columns of one width.
#[derive(Debug, Default)]
pub struct Family<B> {
    /// The index of a register's column.
    places: Vec<u16>,
    columns: Vec<Vec<B>>,
    spare: Vec<B>,
}

/// The columns of all registers and predicates, reused across launches.
#[derive(Debug, Default)]
pub struct RegisterStorage {
    words: Family<u32>,
    longs: Family<u64>,
    predicates: Vec<Vec<u8>>,
    spare: Vec<u8>,
    /// Empty, for its memory.
    views: Vec<Option<&'static [u32]>>,
}

/// All registers and predicates of a chunk, with views of buffers.
pub struct RegisterFile<'m> {
    kept: RegisterStorage,
    views: Vec<Option<&'m [u32]>>,
}

impl Bits for u32 {
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn of(bits: u64) -> Self {
        bits as u32
    }

    fn family(kept: &mut RegisterStorage) -> &mut Family<u32> {
        &mut kept.words
    }

    #[inline]
    fn column<'c>(columns: &'c RegisterFile<'_>, register: Register) -> &'c [u32] {
        match columns.views[columns.kept.words.place(register)] {
            Some(view) => view,
            None => columns.kept.words.column(register),
        }
    }

    fn take_view<'m>(columns: &mut RegisterFile<'m>, register: Register) -> Option<&'m [u32]> {
        columns.views[columns.kept.words.place(register)].take()
    }
}

impl Bits for u64 {
    #[inline(always)]
    fn bits(self) -> u64 {
        self
    }

    #[inline(always)]
    fn of(bits: u64) -> Self {
        bits
    }

    fn family(kept: &mut RegisterStorage) -> &mut Family<u64> {
        &mut kept.longs
    }

    fn column<'c>(columns: &'c RegisterFile<'_>, register: Register) -> &'c [u64] {
        columns.kept.longs.column(register)
    }

    fn take_view<'m>(_: &mut RegisterFile<'m>, _: Register) -> Option<&'m [u64]> {
        None
    }
}

impl<B: Bits> Family<B> {
    fn new(registers: impl Iterator<Item = Register>, lanes: usize) -> Self {
        let mut places = vec![NO_COLUMN; 256];
        let mut count = 0u16;
        for register in registers {
            if places[usize::from(register.0)] == NO_COLUMN {
                places[usize::from(register.0)] = count;
                count += 1;
            }
        }
        Self {
            places,
            columns: (0..count).map(|_| vec![B::default(); lanes]).collect(),
            spare: vec![B::default(); lanes],
        }
    }

    fn place(&self, register: Register) -> usize {
        usize::from(self.places[usize::from(register.0)])
    }

    fn column(&self, register: Register) -> &[B] {
        &self.columns[self.place(register)]
    }
}

/// The registers that a program uses with their types, with repetitions.
pub fn used(program: &Program) -> Vec<(Register, Type)> {
    let mut all = Vec::new();
    for instruction in program.instructions() {
        all.extend(instruction.reads().registers);
        if let Some(Write::Register(register, ty)) = instruction.write() {
            all.push((register, ty));
        }
    }
    all
}

/// Bytes of all columns for each lane.
pub fn bytes_per_lane(program: &Program) -> usize {
    let mut distinct: Vec<(Register, bool)> = used(program)
        .into_iter()
        .map(|(register, ty)| (register, ty.bytes() == 8))
        .collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
        .iter()
        .map(|(_, is_long)| if *is_long { 8 } else { 4 })
        .sum::<usize>()
        + 8
}

impl RegisterStorage {
    /// Columns of this many lanes for the registers that a program uses.
    pub fn new(program: &Program, lanes: usize) -> Self {
        let used = used(program);
        let of = |is_long: bool| {
            used.iter()
                .filter(move |(_, ty)| (ty.bytes() == 8) == is_long)
                .map(|(register, _)| *register)
        };
        let has_predicates = program
            .instructions()
            .iter()
            .any(|instruction| matches!(instruction.write(), Some(Write::Predicate(_))));
        let mut kept = Self {
            words: Family::new(of(false), lanes),
            longs: Family::new(of(true), lanes),
            predicates: vec![vec![0; if has_predicates { lanes } else { 0 }]; 16],
            spare: vec![0; if has_predicates { lanes } else { 0 }],
            views: Vec::new(),
        };
        constants(program)
            .into_iter()
            .for_each(|(_, register, ty, bits)| kept.fill(register, ty, |_| bits));
        kept
    }

    /// Lanes that the columns have room for.
    pub fn lanes(&self) -> usize {
        self.words.spare.len()
    }

    /// Fills a register's whole column.
    pub fn fill(&mut self, register: Register, ty: Type, value: impl Fn(usize) -> u64) {
        fn all<B: Bits>(family: &mut Family<B>, register: Register, value: impl Fn(usize) -> u64) {
            let place = family.place(register);
            family.columns[place]
                .iter_mut()
                .enumerate()
                .for_each(|(lane, to)| *to = B::of(value(lane)));
        }
        if ty.bytes() == 8 {
            all(&mut self.longs, register, value)
        } else {
            all(&mut self.words, register, value)
        }
    }
}

/// The memory of a list of views, for views of other buffers: collecting in place allocates
/// nothing.
fn emptied<'b>(mut views: Vec<Option<&[u32]>>) -> Vec<Option<&'b [u32]>> {
    views.clear();
    views.into_iter().map(|_| None).collect()
}

impl<'m> RegisterFile<'m> {
    /// Registers in reused columns.
    pub fn new(mut kept: RegisterStorage) -> Self {
        let mut views = emptied(std::mem::take(&mut kept.views));
        views.resize(kept.words.columns.len(), None);
        Self { kept, views }
    }

    /// The columns, for reuse.
    pub fn into_kept(mut self) -> RegisterStorage {
        self.kept.views = emptied(self.views);
        self.kept
    }

    /// The columns, to be filled at the start of a chunk.
    pub fn kept(&mut self) -> &mut RegisterStorage {
        &mut self.kept
    }

    /// The values of a register in a range of lanes.
    pub fn get<B: Bits>(&self, register: Register, mask: &Mask) -> &[B] {
        &B::column(self, register)[mask.range()]
    }

    /// The truth values of a predicate.
    pub fn predicate(&self, predicate: Predicate) -> &[u8] {
        &self.kept.predicates[usize::from(predicate.0)]
    }

    /// One lane's value of a register of 32 bits or fewer.
    pub fn word(&self, register: Register, lane: usize) -> u32 {
        u32::column(self, register)[lane]
    }

    /// One lane's value of a register of 64 bits.
    pub fn long(&self, register: Register, lane: usize) -> u64 {
        self.kept.longs.column(register)[lane]
    }

    /// Makes a register a view of words without writers, one for each lane of the chunk.
    pub fn view(&mut self, register: Register, words: &'m [u32]) {
        let place = self.kept.words.place(register);
        self.views[place] = Some(words);
    }

    /// Sets a register's values in the lanes of a mask; `make` receives space for the mask's range.
    pub fn put<B: Bits, E>(
        &mut self,
        register: Register,
        mask: &Mask,
        make: impl FnOnce(&Self, &mut [B]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.put_in(register, mask, None, make)
    }

    /// As [`RegisterFile::put`]; if only a store needs the values, they are written to `place`, and
    /// the register is unchanged.
    #[inline(always)]
    pub fn put_in<B: Bits, E>(
        &mut self,
        register: Register,
        mask: &Mask,
        place: Option<&mut [B]>,
        make: impl FnOnce(&Self, &mut [B]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(place) = place {
            return make(self, place);
        }
        let mut made = std::mem::take(&mut B::family(&mut self.kept).spare);
        let result = make(self, &mut made[mask.range()]);
        let view = B::take_view(self, register);
        let family = B::family(&mut self.kept);
        let place = family.place(register);
        if let (Some(view), false) = (view, mask.is_all()) {
            family.columns[place][..view.len()].copy_from_slice(view);
        }
        if result.is_ok() {
            settle(&mut family.columns[place], &mut made, mask);
        }
        family.spare = made;
        result
    }

    /// Sets a predicate's truth values.
    pub fn put_predicate(
        &mut self,
        predicate: Predicate,
        mask: &Mask,
        make: impl FnOnce(&Self, &mut [u8]),
    ) {
        let mut made = std::mem::take(&mut self.kept.spare);
        make(self, &mut made[mask.range()]);
        settle(
            &mut self.kept.predicates[usize::from(predicate.0)],
            &mut made,
            mask,
        );
        self.kept.spare = made;
    }
}

/// Stores a result in a column: the whole column by swapping, the lanes of a mask one at a time.
fn settle<T: Copy>(column: &mut Vec<T>, made: &mut Vec<T>, mask: &Mask) {
    if mask.is_all() {
        return std::mem::swap(column, made);
    }
    for ((to, &from), &is_in) in column[mask.range()]
        .iter_mut()
        .zip(&made[mask.range()])
        .zip(mask.bytes())
    {
        *to = if is_in != 0 { from } else { *to };
    }
}
