//! Device memory: typed buffers over a pool.
//!
//! A [`Pool`] keeps freed allocations in size buckets and hands them out again; the least recently used go first when its
//! caps are passed. When a device runs out, the pool is trimmed and the allocation tried once more before the error, which
//! carries the numbers. Handles free themselves, once.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::Serialize;

use crate::device::{Allocation, Backend, Device};
use crate::dtype::Element;
use crate::error::{Error, ErrorKind, Result};

/// What an allocation is for; the pool keeps the roles apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Read and written by kernels, copied by the device.
    Device,
    /// Filled by the host before each run; mapped where memory is unified.
    Upload,
}

/// The way a copy between two buffers took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyPath {
    /// Within one device.
    Device,
    /// From one device's memory to another's by themselves.
    Peer,
    /// Through the host's memory.
    Host,
}

/// The most that a copy through the host holds there at a time.
const HOST_COPY_BYTES: usize = 8 << 20;

/// Caps on what a pool keeps and hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolCaps {
    /// The most bytes kept for reuse.
    pub pooled_bytes: u64,
    /// The most allocations kept for reuse.
    pub pooled_count: usize,
    /// The most bytes in use at a time.
    pub live_bytes: u64,
}

impl Default for PoolCaps {
    fn default() -> Self {
        Self { pooled_bytes: 1 << 30, pooled_count: 4096, live_bytes: u64::MAX }
    }
}

/// What a pool holds and has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PoolStats {
    /// Bytes in use.
    pub live_bytes: u64,
    /// Allocations in use.
    pub live_count: u64,
    /// Bytes kept for reuse.
    pub pooled_bytes: u64,
    /// Allocations kept for reuse.
    pub pooled_count: u64,
    /// The maximum of `live_bytes` so far.
    pub peak_bytes: u64,
    /// Requests served from the pool.
    pub hits: u64,
    /// Requests that allocated.
    pub misses: u64,
    /// Allocations dropped to stay within the caps.
    pub evictions: u64,
    /// Times that everything kept was dropped because memory ran out or on request.
    pub trims: u64,
}

struct Pooled {
    allocation: Allocation,
    bytes: usize,
    role: Role,
}

#[derive(Default)]
struct PoolState {
    /// Least recently freed first.
    free: Vec<Pooled>,
    caps: PoolCaps,
    stats: PoolStats,
    /// Bytes of allocations under way: they count towards the cap, so that several threads do not pass it together, and are not live yet.
    reserved_bytes: u64,
}

struct PoolInner {
    backend: Arc<dyn Backend>,
    state: Mutex<PoolState>,
}

/// The pool that all memory of a device comes from.
#[derive(Clone)]
pub struct Pool(Arc<PoolInner>);

/// Pooled device memory: given back when dropped.
pub(crate) struct Block {
    allocation: Option<Allocation>,
    bytes: usize,
    role: Role,
    pool: Weak<PoolInner>,
}

impl Block {
    pub(crate) fn allocation(&self) -> &Allocation {
        self.allocation.as_ref().expect("invariant: taken only in drop")
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let (Some(allocation), Some(pool)) = (self.allocation.take(), self.pool.upgrade()) else { return };
        let evicted = pool.lock().recycle(Pooled { allocation, bytes: self.bytes, role: self.role });
        drop(evicted);
    }
}

impl PoolInner {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn take(&mut self, bytes: usize, role: Role) -> Option<Allocation> {
        let index = self.free.iter().rposition(|kept| kept.bytes == bytes && kept.role == role)?;
        let kept = self.free.remove(index);
        self.stats.pooled_bytes -= bytes as u64;
        self.stats.pooled_count -= 1;
        Some(kept.allocation)
    }

    /// What was reserved is allocated.
    fn count_live(&mut self, bytes: usize, is_pooled: bool) {
        let stats = &mut self.stats;
        self.reserved_bytes -= bytes as u64;
        stats.live_bytes += bytes as u64;
        stats.live_count += 1;
        stats.peak_bytes = stats.peak_bytes.max(stats.live_bytes);
        if is_pooled { stats.hits += 1 } else { stats.misses += 1 }
    }

    fn recycle(&mut self, freed: Pooled) -> Vec<Pooled> {
        self.stats.live_bytes -= freed.bytes as u64;
        self.stats.live_count -= 1;
        self.stats.pooled_bytes += freed.bytes as u64;
        self.stats.pooled_count += 1;
        self.free.push(freed);
        self.evict()
    }

    fn evict(&mut self) -> Vec<Pooled> {
        let mut evicted = Vec::new();
        while self.stats.pooled_bytes > self.caps.pooled_bytes || self.free.len() > self.caps.pooled_count {
            let oldest = self.free.remove(0);
            self.stats.pooled_bytes -= oldest.bytes as u64;
            self.stats.pooled_count -= 1;
            self.stats.evictions += 1;
            evicted.push(oldest);
        }
        evicted
    }

    fn trim(&mut self) -> Vec<Pooled> {
        self.stats.pooled_bytes = 0;
        self.stats.pooled_count = 0;
        self.stats.trims += 1;
        std::mem::take(&mut self.free)
    }
}

impl Pool {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self(Arc::new(PoolInner { backend, state: Mutex::default() }))
    }

    /// What the pool holds and has done.
    pub fn stats(&self) -> PoolStats {
        self.0.lock().stats
    }

    /// Sets the caps; what is kept beyond them is dropped at once.
    pub fn set_caps(&self, caps: PoolCaps) {
        let mut state = self.0.lock();
        state.caps = caps;
        let evicted = state.evict();
        drop(state);
        drop(evicted);
    }

    /// Drops everything kept for reuse.
    pub fn trim(&self) {
        let kept = self.0.lock().trim();
        drop(kept);
    }

    /// Memory whose bytes are whatever was there before: for a caller that writes all of it.
    pub(crate) fn acquire(&self, bytes: usize, role: Role) -> Result<Arc<Block>> {
        let bucket = bucket(bytes).ok_or_else(|| self.out_of_memory(bytes, &self.stats(), "an address reaches", isize::MAX as u64))?;
        let pooled = {
            let mut state = self.0.lock();
            let under_way = state.reserved_bytes.checked_add(bucket as u64);
            let after = under_way.and_then(|bytes| bytes.checked_add(state.stats.live_bytes));
            if after.is_none_or(|after| after > state.caps.live_bytes) {
                return Err(self.out_of_memory(bucket, &state.stats, "the pool's cap on live bytes", state.caps.live_bytes));
            }
            state.reserved_bytes += bucket as u64;
            state.take(bucket, role)
        };
        let is_pooled = pooled.is_some();
        let allocation = match pooled.map_or_else(|| self.allocate(bucket, role), Ok) {
            Ok(allocation) => allocation,
            Err(error) => {
                self.0.lock().reserved_bytes -= bucket as u64;
                return Err(error);
            }
        };
        self.0.lock().count_live(bucket, is_pooled);
        Ok(Arc::new(Block { allocation: Some(allocation), bytes: bucket, role, pool: Arc::downgrade(&self.0) }))
    }

    /// Zeroed memory: nothing of its former owner shows.
    pub(crate) fn acquire_zeroed(&self, bytes: usize, role: Role) -> Result<Arc<Block>> {
        let block = self.acquire(bytes, role)?;
        let zeros = vec![0; bytes.min(HOST_COPY_BYTES)];
        for offset in (0..bytes).step_by(HOST_COPY_BYTES) {
            self.0.backend.write(block.allocation(), offset, &zeros[..(bytes - offset).min(HOST_COPY_BYTES)])?;
        }
        Ok(block)
    }

    fn allocate(&self, bytes: usize, role: Role) -> Result<Allocation> {
        let backend = &self.0.backend;
        match backend.allocate(bytes, role) {
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                self.trim();
                backend.allocate(bytes, role).map_err(|error| {
                    let capacity = backend.info().memory_bytes.unwrap_or(0);
                    self.out_of_memory(bytes, &self.stats(), "the device's memory", capacity).with_source(error)
                })
            }
            other => other,
        }
    }

    fn out_of_memory(&self, asked: usize, stats: &PoolStats, what: &str, limit: u64) -> Error {
        Error::new(
            ErrorKind::OutOfMemory,
            format!(
                "{}: out of memory: {asked} bytes asked, {} live in {} buffers, {} kept for reuse, {what} is {limit}",
                self.0.backend.info().id,
                stats.live_bytes,
                stats.live_count,
                stats.pooled_bytes
            ),
        )
    }
}

/// The bucket of a size: at least 256 bytes, then four steps to each doubling, so that at most a fifth is unused; none beyond what a
/// pointer can be moved by.
fn bucket(bytes: usize) -> Option<usize> {
    if bytes <= 1024 {
        return Some(bytes.max(1).next_multiple_of(256));
    }
    let step = 1 << (usize::BITS - 1 - bytes.leading_zeros() - 2);
    bytes.checked_next_multiple_of(step).filter(|bucket| isize::try_from(*bucket).is_ok())
}

/// A typed buffer in a device's memory, freed when its last handle goes.
///
/// # Example
/// ```
/// use tectum::Device;
/// let device = Device::open("cpu")?;
/// let buffer = device.buffer_from(&[1.0f32, 2.0, 3.0])?;
/// assert_eq!(buffer.read()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), tectum::Error>(())
/// ```
pub struct Buffer<T: Element> {
    device: Device,
    block: Arc<Block>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self { device: self.device.clone(), block: self.block.clone(), len: self.len, element: PhantomData }
    }
}

impl<T: Element> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer<{:?}>[{}] on {:?}", T::DTYPE, self.len, self.device)
    }
}

impl Device {
    /// Allocates a zeroed buffer of `len` elements.
    ///
    /// # Errors
    /// `OutOfMemory` with the numbers, after the pool was trimmed and the allocation retried.
    pub fn buffer<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        // Beyond the greatest size no pool has a bucket.
        let block = self.pool().acquire_zeroed(len.saturating_mul(size_of::<T>()), Role::Device)?;
        Ok(Buffer::from_block(self.clone(), block, len))
    }

    /// Allocates a buffer and copies `data` into it.
    ///
    /// # Errors
    /// As [`Device::buffer`].
    pub fn buffer_from<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let block = self.pool().acquire(size_of_val(data), Role::Device)?;
        let buffer = Buffer::from_block(self.clone(), block, data.len());
        buffer.write(data)?;
        Ok(buffer)
    }
}

impl<T: Element> Buffer<T> {
    pub(crate) fn from_block(device: Device, block: Arc<Block>, len: usize) -> Self {
        Self { device, block, len, element: PhantomData }
    }

    pub(crate) fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Replaces the contents.
    ///
    /// # Errors
    /// `Invalid` if `data` has another length; whatever the device reports.
    pub fn write(&self, data: &[T]) -> Result<()> {
        if data.len() != self.len {
            return Err(Error::invalid(format!("buffer of {} elements written with {}", self.len, data.len())));
        }
        if data.is_empty() {
            return Ok(());
        }
        self.device.backend().write(self.block.allocation(), 0, bytemuck::cast_slice(data))
    }

    /// Copies the contents to the host, after the device's earlier work.
    ///
    /// # Errors
    /// Whatever the device reports.
    pub fn read(&self) -> Result<Vec<T>> {
        let mut data = vec![T::zeroed(); self.len];
        if self.len > 0 {
            self.device.backend().read(self.block.allocation(), 0, bytemuck::cast_slice_mut(&mut data))?;
        }
        Ok(data)
    }

    /// Copies the contents to a buffer of any device, after both devices' earlier work, and waits.
    ///
    /// # Errors
    /// `Invalid` if the lengths differ; whatever either device reports.
    /// # Example
    /// ```
    /// use tectum::{CopyPath, Device};
    /// let device = Device::open("cpu")?;
    /// let (from, to) = (device.buffer_from(&[1u32, 2])?, device.buffer::<u32>(2)?);
    /// assert_eq!(from.copy_to(&to)?, CopyPath::Host);
    /// assert_eq!(to.read()?, [1, 2]);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn copy_to(&self, to: &Buffer<T>) -> Result<CopyPath> {
        if to.len != self.len {
            return Err(Error::invalid(format!("buffer of {} elements copied to one of {}", self.len, to.len)));
        }
        if self.len == 0 || Arc::ptr_eq(&self.block, &to.block) {
            return Ok(CopyPath::Device);
        }
        let (source, target) = (self.block.allocation(), to.block.allocation());
        let bytes = self.len * size_of::<T>();
        if let Some(path) = self.device.backend().copy(source, target, bytes)? {
            return Ok(path);
        }
        let mut piece = vec![0; bytes.min(HOST_COPY_BYTES)];
        for offset in (0..bytes).step_by(HOST_COPY_BYTES) {
            let piece = &mut piece[..(bytes - offset).min(HOST_COPY_BYTES)];
            self.device.backend().read(source, offset, piece)?;
            to.device.backend().write(target, offset, piece)?;
        }
        Ok(CopyPath::Host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_the_size_and_waste_at_most_a_fifth() {
        for bytes in (1..5000).chain([1 << 20, (1 << 20) + 1, 123_456_789]) {
            let bucket = bucket(bytes).expect("a size that there is");
            assert!(bucket >= bytes && bucket.is_multiple_of(256), "{bytes} → {bucket}");
            assert!(bytes <= 1024 || bucket * 4 <= bytes * 5, "{bytes} → {bucket}");
        }
    }

    #[test]
    fn freed_memory_is_reused_and_counted_once() {
        let device = Device::null_with_capacity(1 << 20);
        let first = device.buffer::<f32>(1000).expect("fits");
        let copy = first.clone();
        drop(first);
        assert_eq!(device.pool().stats().live_count, 1);
        drop(copy);
        let stats = device.pool().stats();
        assert_eq!((stats.live_count, stats.live_bytes, stats.pooled_count), (0, 0, 1));
        let _second = device.buffer::<f32>(1000).expect("fits");
        let stats = device.pool().stats();
        assert_eq!((stats.hits, stats.misses, stats.pooled_count), (1, 1, 0));
    }

    #[test]
    fn the_least_recently_freed_is_evicted_first() {
        let device = Device::null_with_capacity(1 << 20);
        device.pool().set_caps(PoolCaps { pooled_count: 2, ..PoolCaps::default() });
        let buffers: Vec<_> = [1000, 2000, 3000].map(|len| device.buffer::<f32>(len).expect("fits")).into();
        drop(buffers);
        assert_eq!(device.pool().stats().evictions, 1);
        let _kept = device.buffer::<f32>(2000).expect("fits");
        let _evicted = device.buffer::<f32>(1000).expect("fits");
        let stats = device.pool().stats();
        assert_eq!((stats.hits, stats.misses), (1, 4));
    }

    #[test]
    fn running_out_trims_retries_then_fails_with_the_numbers() {
        let device = Device::null_with_capacity(10_240);
        drop(device.buffer::<f32>(2000).expect("fits"));
        let held = device.buffer::<f32>(1500).expect("fits after a trim");
        assert_eq!(device.pool().stats().trims, 1);
        let error = device.buffer::<f32>(2000).expect_err("8 KB do not fit beside 6 KB in 10 KB");
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        let text = error.to_string();
        assert!(text.contains("8192 bytes asked") && text.contains("6144 live") && text.contains("10240"), "{text}");
        drop(held);
        device.buffer::<f32>(2000).expect("fits again");
    }

    #[test]
    fn defect_17_several_threads_do_not_pass_the_cap_on_live_bytes_together() {
        let device = Device::null_with_capacity(1 << 40);
        device.pool().set_caps(PoolCaps { live_bytes: 300 << 20, ..PoolCaps::default() });
        let (barrier, is_over) = (std::sync::Barrier::new(17), std::sync::atomic::AtomicBool::new(false));
        let held: Vec<_> = std::thread::scope(|scope| {
            let one = || {
                barrier.wait();
                (0..8).filter_map(|_| device.pool().acquire(16 << 20, Role::Device).ok()).collect::<Vec<_>>()
            };
            let watcher = scope.spawn(|| {
                barrier.wait();
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let stats = device.pool().stats();
                    assert!(stats.peak_bytes >= stats.live_bytes, "{stats:?}");
                }
            });
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(one)).collect();
            let joined: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            watcher.join().expect("the maximum is never below what is live");
            joined.into_iter().flat_map(|held| held.expect("no panic")).collect()
        });
        let stats = device.pool().stats();
        assert_eq!((held.len(), stats.live_bytes, stats.peak_bytes), (18, 288 << 20, 288 << 20));
        drop(held);
        assert_eq!(device.pool().stats().live_bytes, 0);
    }

    #[test]
    fn defect_19_a_buffer_of_the_greatest_length_is_an_error() {
        for device in [Device::open("cpu").expect("always there"), Device::null_with_capacity(1 << 20)] {
            for len in [usize::MAX, usize::MAX / 4, 1 << 62, isize::MAX as usize] {
                assert_eq!(device.buffer::<f32>(len).expect_err("no memory has it").kind(), ErrorKind::OutOfMemory, "{len}");
            }
            assert_eq!(device.buffer::<f32>(3).expect("fits").len(), 3);
        }
    }

    #[test]
    fn the_cap_on_live_bytes_holds() {
        let device = Device::null_with_capacity(1 << 20);
        device.pool().set_caps(PoolCaps { live_bytes: 4096, ..PoolCaps::default() });
        let _half = device.buffer::<f32>(512).expect("fits");
        assert_eq!(device.buffer::<f32>(1024).expect_err("over the cap").kind(), ErrorKind::OutOfMemory);
    }
}
