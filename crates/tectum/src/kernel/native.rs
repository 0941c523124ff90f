//! The arguments of a native twin: its parameters and its bindings as slices of host memory.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::AtomicU32;

use super::Kernel;
use crate::dtype::{DType, Element};

/// A bound range of host memory; only devices create these.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NativeRegion {
    pub(crate) start: *mut u8,
    pub(crate) bytes: usize,
    pub(crate) dtype: DType,
    pub(crate) writable: bool,
}

/// How a launch on the CPU is shared among threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadBudget {
    /// Maximum threads, including itself.
    pub(crate) threads: usize,
    /// Minimum work of each, in elements.
    pub(crate) min_work_per_thread: usize,
    /// Whether it runs where no other thread may help; what it would have shared is still reported.
    pub(crate) alone: bool,
}

/// The arguments of one launch on the CPU.
pub struct NativeCall<'a> {
    kernel: &'a Kernel,
    params: &'a [u32],
    regions: &'a [NativeRegion],
    sharing: ThreadBudget,
    written: Cell<u32>,
    read: Cell<u32>,
    benefits_from_threads: Cell<bool>,
    lifetime: PhantomData<&'a mut [u8]>,
}

impl<'a> NativeCall<'a> {
    /// Binds a launch.
    ///
    /// # Safety
    /// Every region is valid for `bytes` bytes, aligned for its element type and initialised; for
    /// `'a` no other code writes it, and no writable region overlaps another of the same call. The
    /// CPU device upholds this: it locks each buffer while a launch runs, and the plan rejects
    /// launches with an overlapping written region.
    pub(crate) unsafe fn new(
        kernel: &'a Kernel,
        params: &'a [u32],
        regions: &'a [NativeRegion],
        sharing: ThreadBudget,
    ) -> Self {
        Self {
            kernel,
            params,
            regions,
            sharing,
            written: Cell::new(0),
            read: Cell::new(0),
            benefits_from_threads: Cell::new(false),
            lifetime: PhantomData,
        }
    }

    /// The kernel's data for its twin ([`KernelBuilder::data`](super::KernelBuilder::data)).
    ///
    /// # Panics
    /// If the kernel has no data of this type: a bug in the twin.
    pub fn data<T: 'static>(&self) -> &'a T {
        self.kernel
            .data()
            .and_then(|data| data.downcast_ref())
            .expect("invariant: a kernel and its twin agree on the data")
    }

    /// The parameter words.
    pub(crate) fn params(&self) -> &'a [u32] {
        self.params
    }

    /// Whether the kernel has a declared binding.
    pub(crate) fn has_binding(&self, declared: usize) -> bool {
        self.kernel.has_binding(declared)
    }

    /// The parameter word at `index` as an unsigned integer.
    pub fn u32(&self, index: usize) -> u32 {
        self.params[index]
    }

    /// The parameter word at `index` as a size.
    pub fn size(&self, index: usize) -> usize {
        self.params[index] as usize
    }

    /// The parameter word at `index` as a float.
    pub fn f32(&self, index: usize) -> f32 {
        f32::from_bits(self.params[index])
    }

    /// The elements of a binding.
    ///
    /// # Panics
    /// If the binding holds another element type or was taken by [`NativeCall::write`]: a bug in
    /// the twin.
    pub fn read<T: Element>(&self, index: usize) -> &'a [T] {
        let region = self.region::<T>(index);
        let bit = 1 << index;
        assert!(
            self.written.get() & bit == 0,
            "binding {index} is already taken for writing"
        );
        self.read.set(self.read.get() | bit);
        // SAFETY: `new`'s contract covers validity and alignment; the bits above keep it from
        // aliasing a `write`.
        unsafe {
            std::slice::from_raw_parts(region.start.cast::<T>(), region.bytes / size_of::<T>())
        }
    }

    /// The elements of a binding that this kernel writes; may be taken once.
    ///
    /// # Panics
    /// If the binding is read-only, holds another element type, or was taken before: a bug in the
    /// twin.
    pub fn write<T: Element>(&self, index: usize) -> &'a mut [T] {
        let region = self.region::<T>(index);
        let bit = 1 << index;
        assert!(region.writable, "binding {index} is read-only");
        assert!(
            (self.written.get() | self.read.get()) & bit == 0,
            "binding {index} is already taken"
        );
        self.written.set(self.written.get() | bit);
        // SAFETY: `new`'s contract covers validity and exclusivity between regions; the bits above
        // make it the only slice of this region.
        unsafe {
            std::slice::from_raw_parts_mut(region.start.cast::<T>(), region.bytes / size_of::<T>())
        }
    }

    fn region<T: Element>(&self, index: usize) -> NativeRegion {
        let region = self.regions[index];
        assert!(
            region.dtype == T::DTYPE,
            "binding {index} holds {:?}, not {:?}",
            region.dtype,
            T::DTYPE
        );
        region
    }

    /// Threads worth using for `work` (elements, or operations / 16): one until the work is large
    /// enough to wake another.
    ///
    /// Waking a sleeping worker costs some 10 to 50 µs, so a thread gets at least
    /// [`WORK_PER_THREAD`]; one that is awake, an eighth of that.
    pub fn threads_for(&self, work: usize) -> usize {
        let threads = self
            .sharing
            .threads
            .min(work / self.sharing.min_work_per_thread)
            .max(1);
        self.benefits_from_threads
            .set(self.benefits_from_threads.get() | (threads > 1));
        if self.sharing.alone { 1 } else { threads }
    }

    /// Whether the twin requested work that is worth several threads.
    pub(crate) fn benefits_from_threads(&self) -> bool {
        self.benefits_from_threads.get()
    }
}

/// Elements that one thread should have before a second is woken: about 60 µs of streaming.
pub const WORK_PER_THREAD: usize = 1 << 17;

/// Runs `work(index)` for every index below `count` on at most `threads` threads.
///
/// The only place where a native twin is split: not generic, so that the machinery is compiled once
/// and not for every twin.
pub fn for_each_index(count: usize, threads: usize, work: &(dyn Fn(usize) + Sync)) {
    if threads <= 1 {
        (0..count).for_each(work)
    } else {
        halve(0..count, rayon_core::current_num_threads(), false, work)
    }
}

/// The same with each index as a task of its own, for work of unequal length, on all threads.
pub fn for_each_task(count: usize, work: &(dyn Fn(usize) + Sync)) {
    halve(
        0..count,
        rayon_core::current_num_threads().max(count),
        false,
        work,
    );
}

/// Halves a range into about `parts`, and further where a thread without work takes one: what
/// rayon's parallel iterators do.
fn halve(range: Range<usize>, parts: usize, is_stolen: bool, work: &(dyn Fn(usize) + Sync)) {
    if range.len() < 2 || (parts == 0 && !is_stolen) {
        return range.for_each(work);
    }
    let parts = if is_stolen {
        rayon_core::current_num_threads().max(parts / 2)
    } else {
        parts / 2
    };
    let middle = range.start + range.len() / 2;
    rayon_core::join_context(
        |thread| halve(range.start..middle, parts, thread.migrated(), work),
        |thread| halve(middle..range.end, parts, thread.migrated(), work),
    );
}

/// A slice split into parts of equal length, the last may be shorter; several threads take
/// different parts.
struct DisjointChunks<'a, T> {
    start: *mut T,
    len: usize,
    part: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: `DisjointChunks` borrows its slice exclusively, and `DisjointChunks::take` gives each
// part to one caller.
unsafe impl<T: Send> Sync for DisjointChunks<'_, T> {}

impl<'a, T> DisjointChunks<'a, T> {
    /// # Panics
    /// If a part has no element.
    fn new(slice: &'a mut [T], part: usize) -> Self {
        assert!(part > 0, "a part has at least one element");
        Self {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            part,
            lifetime: PhantomData,
        }
    }

    fn count(&self) -> usize {
        self.len.div_ceil(self.part)
    }

    /// # Safety
    /// No part is taken twice.
    #[allow(
        clippy::mut_from_ref,
        reason = "each part is taken once, as the caller promises"
    )]
    unsafe fn take(&self, index: usize) -> &'a mut [T] {
        let len = self.part.min(self.len - index * self.part);
        // SAFETY: the part lies in the slice, which is borrowed for `'a`; by the caller's promise
        // it has no alias.
        unsafe { std::slice::from_raw_parts_mut(self.first_of(index), len) }
    }

    /// The first element of a part.
    ///
    /// # Panics
    /// If there is no such part.
    fn first_of(&self, index: usize) -> *mut T {
        assert!(index < self.count(), "part {index} of {}", self.count());
        // SAFETY: the part begins within the slice.
        unsafe { self.start.add(index * self.part) }
    }
}

/// Calls a method that is generic over the vectors of `S` that hold sixteen floats, and over
/// constants after their number.
macro_rules! by_vectors {
    ($S:ident, $object:ident.$method:ident($simd:ident) $(, $constant:literal)*) => {
        match $S::F32_LANES {
            16 => $object.$method::<$S, 1 $(, $constant)*>($simd),
            8 => $object.$method::<$S, 2 $(, $constant)*>($simd),
            4 => $object.$method::<$S, 4 $(, $constant)*>($simd),
            _ => $object.$method::<$S, 16 $(, $constant)*>($simd),
        }
    };
}
pub(crate) use by_vectors;

/// Splits `out` into chunks of `chunk` elements and runs `work(index of the chunk, chunk)` on at
/// most `threads` threads.
pub fn for_each_chunk<T: Element>(
    out: &mut [T],
    chunk: usize,
    threads: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let parts = DisjointChunks::new(out, chunk);
    for_each_index(parts.count(), threads, &|index| {
        // SAFETY: `for_each_index` passes each index once.
        work(index, unsafe { parts.take(index) });
    });
}

/// Splits two slices into as many chunks, of `chunks` elements each, and runs
/// `work(index, chunk of a, chunk of b)` on at most `threads` threads.
///
/// # Panics
/// If one has more chunks than the other.
pub fn for_each_chunk_pair<A: Element, B: Element>(
    (a, b): (&mut [A], &mut [B]),
    chunks: [usize; 2],
    threads: usize,
    work: impl Fn(usize, &mut [A], &mut [B]) + Sync,
) {
    let (a, b) = (
        DisjointChunks::new(a, chunks[0]),
        DisjointChunks::new(b, chunks[1]),
    );
    assert_eq!(a.count(), b.count(), "chunks of two slices");
    for_each_index(a.count(), threads, &|index| {
        // SAFETY: `for_each_index` passes each index once.
        let (a, b) = unsafe { (a.take(index), b.take(index)) };
        work(index, a, b);
    });
}

/// A few adjacent columns of a matrix, with exclusive access.
pub struct ColumnBlock<'a, T> {
    start: *mut T,
    rows: usize,
    width: usize,
    count: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

impl<T> ColumnBlock<'_, T> {
    /// The part of a row that lies in the columns.
    ///
    /// # Panics
    /// Beyond the last row.
    #[inline(always)]
    pub fn row(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        // SAFETY: `for_each_columns` made these columns from a matrix of `rows` rows that it
        // borrows for their lifetime, each column of it for one of them; the slice lies in that
        // row, and borrows them all.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.width), self.count) }
    }

    /// `ROWS` rows of `PANELS · WIDTH` columns, from a first row and column on.
    ///
    /// # Panics
    /// Beyond the last row or column.
    #[inline(always)]
    pub fn tile<const WIDTH: usize, const PANELS: usize, const ROWS: usize>(
        &mut self,
        row: usize,
        column: usize,
    ) -> [&mut [[T; WIDTH]; PANELS]; ROWS] {
        let is_inside = row.saturating_add(ROWS) <= self.rows
            && column.saturating_add(WIDTH * PANELS) <= self.count;
        assert!(
            is_inside,
            "{ROWS} rows from {row} of {}, columns from {column} of {}",
            self.rows, self.count
        );
        std::array::from_fn(
            #[inline(always)]
            // SAFETY: as in `row`; the columns lie within each row, and the rows differ.
            |index| unsafe {
                &mut *self
                    .start
                    .add((row + index) * self.width + column)
                    .cast::<[[T; WIDTH]; PANELS]>()
            },
        )
    }
}

/// Splits a matrix by `block` columns, together with `out`, which has so many elements for each
/// column, and runs `work(index of the block, columns, block of out)` on at most `threads` threads.
///
/// # Panics
/// If `out` has no whole number of columns, or the matrix no whole number of rows of them.
pub fn for_each_columns<T: Element, U: Element>(
    matrix: &mut [T],
    (out, per_column): (&mut [U], usize),
    block: usize,
    threads: usize,
    work: impl Fn(usize, ColumnBlock<'_, T>, &mut [U]) + Sync,
) {
    let width = out.len() / per_column;
    if width == 0 {
        return;
    }
    assert!(
        out.len() == width * per_column && matrix.len().is_multiple_of(width),
        "{} and {} elements, {width} columns",
        matrix.len(),
        out.len()
    );
    let rows = matrix.len() / width;
    let matrix = DisjointChunks::new(matrix, block);
    for_each_chunk(out, block * per_column, threads, |index, part| {
        // `ColumnBlock` upholds the contract of the pointer: block `index` of `out` is passed to
        // one call, and its columns lie within every row.
        let start = matrix.first_of(index);
        work(
            index,
            ColumnBlock {
                start,
                rows,
                width,
                count: part.len() / per_column,
                lifetime: PhantomData,
            },
            part,
        );
    });
}

/// Minimum bytes of a result that is written past the caches.
pub const STREAM_FROM_BYTES: usize = 32 << 20;
/// The longest block that [`for_each_block`] holds in L1 before it is written, in 32-bit words: 16
/// KiB.
const STREAM_BLOCK: usize = 4096;
/// Default length of a block of [`for_each_block`], in elements. Longer ones stream in bursts that
/// the next block's loads wait for.
pub const BLOCK: usize = 512;
/// Blocks that one task of [`for_each_block`] works through.
const BLOCKS_PER_TASK: usize = 64;

/// Splits `out` into blocks of `block` elements and runs `work(index of the block, block)` on at
/// most `threads` threads.
///
/// A result of at least 32 MiB is made block by block in L1 and written with streaming stores: a
/// plain store would first read each line from memory, and the result would not fit the caches
/// anyway. `work` must write every element of its block and read none. Blocks longer than 16 KiB
/// are written in place.
pub fn for_each_block<T: Element>(
    out: &mut [T],
    block: usize,
    threads: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let task = block
        * BLOCKS_PER_TASK
            .min((out.len() / block.max(1)).div_ceil(4 * threads))
            .max(1);
    let streams =
        size_of_val(out) >= STREAM_FROM_BYTES && block * size_of::<T>() <= 4 * STREAM_BLOCK;
    for_each_chunk(out, task, threads, |index, part| {
        let blocks = part.chunks_mut(block).zip(index * (task / block)..);
        if !streams {
            return blocks.for_each(|(part, index)| work(index, part));
        }
        let mut made = [T::zeroed(); STREAM_BLOCK];
        for (part, index) in blocks {
            let made = &mut made[..part.len()];
            work(index, made);
            // SAFETY: the fence below follows before the task ends, and so before another thread
            // reads the block.
            unsafe { stream(part, made) };
        }
        stream_fence();
    });
}

/// Words that several threads may read and write concurrently.
pub fn as_atomics(words: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: an `AtomicU32` has the size and alignment of a `u32` on every target that has it, and
    // the exclusive borrow lasts as long as the returned shared one.
    unsafe { std::slice::from_raw_parts(words.as_mut_ptr().cast::<AtomicU32>(), words.len()) }
}

/// Copies with stores that bypass the caches; [`stream_fence`] must follow before another thread
/// may read them.
///
/// With the widest stores of the machine: a cache line that one store writes need not be combined
/// from parts.
///
/// # Safety
/// The calling thread executes [`stream_fence`] before another thread can read `to`.
#[cfg(target_arch = "x86_64")]
pub unsafe fn stream<T: Element>(to: &mut [T], from: &[T]) {
    use std::is_x86_feature_detected as has;
    let copy = match (has!("avx512f"), has!("avx")) {
        (true, _) => streaming::by_64,
        (false, true) => streaming::by_32,
        (false, false) => streaming::by_16,
    };
    // SAFETY: the machine has the feature of the chosen function; SSE2 is part of x86-64.
    unsafe { copy(bytemuck::cast_slice_mut(to), bytemuck::cast_slice(from)) };
}

/// Copies by streaming stores of several widths.
#[cfg(target_arch = "x86_64")]
mod streaming {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm_stream_si128, _mm256_loadu_si256, _mm256_stream_si256,
        _mm512_loadu_si512, _mm512_stream_si512,
    };

    macro_rules! copies {
        ($($name:ident: $bytes:literal, $feature:literal, $load:ident, $store:ident;)*) => {
            $(
                /// # Safety
                /// The machine has the feature.
                ///
                /// # Panics
                /// If the lengths differ.
                #[target_feature(enable = $feature)]
                pub(crate) unsafe fn $name(to: &mut [u8], from: &[u8]) {
                    assert_eq!(to.len(), from.len(), "invariant: a block is copied to a range of its length");
                    let head = to.as_ptr().align_offset($bytes).min(to.len());
                    let ((to_head, to), (from_head, from)) = (to.split_at_mut(head), from.split_at(head));
                    let ((to, to_rest), (from, from_rest)) = (to.as_chunks_mut::<$bytes>(), from.as_chunks::<$bytes>());
                    to_head.copy_from_slice(from_head);
                    for (to, from) in to.iter_mut().zip(from) {
                        // SAFETY: both are as many valid bytes as the vector has, and after `head`
                        // each `to` begins at a multiple of them.
                        unsafe { $store(to.as_mut_ptr().cast(), $load(from.as_ptr().cast())) };
                    }
                    to_rest.copy_from_slice(from_rest);
                }
            )*
        };
    }
    copies! {
        by_64: 64, "avx512f", _mm512_loadu_si512, _mm512_stream_si512;
        by_32: 32, "avx", _mm256_loadu_si256, _mm256_stream_si256;
        by_16: 16, "sse2", _mm_loadu_si128, _mm_stream_si128;
    }

    #[test]
    fn every_width_copies_all_bytes_from_and_to_any_place() {
        use std::is_x86_feature_detected as has;
        let from: Vec<u8> = (0..400u16).map(|byte| byte as u8).collect();
        type Copies = unsafe fn(&mut [u8], &[u8]);
        let widths: [(bool, Copies); 3] = [
            (has!("avx512f"), by_64),
            (has!("avx"), by_32),
            (true, by_16),
        ];
        for (width, copy) in widths
            .into_iter()
            .enumerate()
            .filter_map(|(width, (is_here, copy))| is_here.then_some((width, copy)))
        {
            for (first, len) in
                (0..70).flat_map(|first| [0, 1, 15, 16, 64, 200, 257].map(|len| (first, len)))
            {
                let mut to = vec![0xaa; 400];
                // SAFETY: the machine has the feature.
                unsafe { copy(&mut to[first..][..len], &from[3..][..len]) };
                super::stream_fence();
                assert_eq!(
                    to[first..][..len],
                    from[3..][..len],
                    "width {width}, {len} bytes at {first}"
                );
                assert!(
                    to[..first]
                        .iter()
                        .chain(&to[first + len..])
                        .all(|byte| *byte == 0xaa),
                    "width {width}, {len} bytes at {first}"
                );
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[expect(clippy::missing_safety_doc, reason = "that of the other definition")]
pub unsafe fn stream<T: Element>(to: &mut [T], from: &[T]) {
    to.copy_from_slice(from);
}

/// Orders streaming stores before everything that this thread publishes afterwards.
pub fn stream_fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the fence touches no memory, and SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Elements of one step of a loop that calls [`prefetch`]: two cache lines of 32-bit words.
pub const PREFETCH_STEP: usize = 32;

/// Prefetches the [`PREFETCH_STEP`] elements from `at` on, none beyond the end.
///
/// The part of the next row that a row's last pass prefetches arrives while that pass computes.
#[inline(always)]
pub fn prefetch(x: &[f32], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some([first, .., last]) = x.get(at..at + PREFETCH_STEP) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program sees, both addresses are of elements,
        // and SSE is part of x86-64.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(first).cast());
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(last).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, at);
}

/// Prefetches the cache line of an element, if there is one.
#[inline(always)]
pub fn prefetch_line<T>(x: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = x.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program sees, the address is of an element, and
        // SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, at);
}

/// Prefetches the cache line of an element, if there is one, to a level below L1: for data needed
/// only after more than L1 holds.
#[inline(always)]
pub(crate) fn prefetch_line_l2<T>(x: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = x.get(at) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program sees, the address is of an element, and
        // SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(element).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, at);
}

/// The target level of a prefetch, and its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrefetchHint {
    /// In L1.
    Near,
    /// In L1, to be written.
    ToWrite,
    /// In a level below L1.
    Far,
}

/// Prefetches the cache line of an element of `x`, counted from its first, whether or not there is
/// such an element: for inner loops, where a test would cost more than an unneeded line.
#[inline(always)]
pub(crate) fn prefetch_unchecked<T>(x: &[T], at: usize, wanted: PrefetchHint) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let address = x.as_ptr().wrapping_add(at).cast();
        // SAFETY: a prefetch reads and changes nothing that the program sees and never faults,
        // whatever the address, and SSE is part of x86-64.
        unsafe {
            match wanted {
                PrefetchHint::Near => _mm_prefetch::<_MM_HINT_T0>(address),
                PrefetchHint::ToWrite => _mm_prefetch::<_MM_HINT_ET0>(address),
                PrefetchHint::Far => _mm_prefetch::<_MM_HINT_T1>(address),
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (x, at, wanted);
}

/// Prefetches all of `x`.
pub fn prefetch_read(x: &[u32]) {
    #[cfg(target_arch = "x86_64")]
    for line in x.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program sees, the address is of an element, and
        // SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = x;
}

/// Prefetches all of `y` for writing.
pub fn prefetch_write(y: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in y.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch changes nothing that the program sees, the address is of an element,
        // and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = y;
}

/// Runs a loop compiled for the widest SIMD of this machine (AVX-512, AVX2, NEON or none, found
/// once at run time).
///
/// The closure must be marked `#[inline(always)]`, else its loop is compiled for the baseline.
#[inline(always)]
pub fn simd<R>(work: impl FnOnce() -> R) -> R {
    with_simd(work)
}

/// Runs work that is written with vectors of the widest SIMD of this machine.
#[inline(always)]
pub(crate) fn with_simd<W: pulp::WithSimd>(work: W) -> W::Output {
    static ARCH: std::sync::LazyLock<pulp::Arch> = std::sync::LazyLock::new(pulp::Arch::new);
    ARCH.dispatch(work)
}
