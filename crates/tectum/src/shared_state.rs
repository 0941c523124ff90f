//! Device memory that several executables share, of an element type known at run time.

use std::sync::Arc;

use crate::device::{Block, CopyPath, Device, HOST_COPY_BYTES, Role};
use crate::dtype::DType;
use crate::error::Result;

/// Memory for a state of several executables, freed when its last handle is dropped. The element
/// type is a value, so that states of different types are in one list:
/// [`Plan::compile_with`](crate::Plan::compile_with).
/// [`Executable::state_buffer`](crate::Executable::state_buffer) and
/// [`Buffer::as_state`](crate::Buffer::as_state) return it.
///
/// # Example
/// ```
/// use tectum::{DType, Device, PlanBuilder};
/// let device = Device::open("cpu")?;
/// let (counts, scale) = (device.buffer_from(&[1u32, 2])?, device.buffer_from(&[0.5f32])?);
/// let mut plan = PlanBuilder::new("shared");
/// let states = [plan.state("counts", DType::U32, 2), plan.state("scale", DType::F32, 1)];
/// let run = plan.finish()?.compile_with(&device, &[(states[0], counts.as_state()), (states[1], scale.as_state())])?;
/// let state = run.state_buffer(states[0])?;
/// assert_eq!((state.dtype(), state.typed::<u32>()?.read()?), (DType::U32, vec![1, 2]));
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Clone)]
pub struct SharedState {
    pub(crate) device: Device,
    pub(crate) block: Arc<Block>,
    pub(crate) len: usize,
    pub(crate) dtype: DType,
}

impl std::fmt::Debug for SharedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "SharedState({} × {} on {:?})",
            self.len,
            self.dtype.wgsl(),
            self.device
        )
    }
}

impl SharedState {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The address in CUDA's primary context of the device, for other libraries on the same device;
    /// none on devices of other kinds.
    ///
    /// The memory exists as long as a handle to it. A run is complete when it returns; what others
    /// write must be complete before the next run.
    pub fn cuda_address(&self) -> Option<u64> {
        self.block.allocation().cuda_address()
    }

    /// An independent copy on the same device, after the device's earlier work.
    ///
    /// # Errors
    /// `OutOfMemory` as [`Device::buffer`]; whatever the device reports.
    pub fn duplicate(&self) -> Result<SharedState> {
        let block = self.device.pool().acquire(self.bytes(), Role::Device)?;
        let copy = SharedState {
            block,
            ..self.clone()
        };
        self.copy_to(&copy)?;
        Ok(copy)
    }

    /// Copies to a state of the same bytes, and waits.
    pub(crate) fn copy_to(&self, to: &SharedState) -> Result<CopyPath> {
        if self.len == 0 || Arc::ptr_eq(&self.block, &to.block) {
            return Ok(CopyPath::Device);
        }
        let (source, target, bytes) =
            (self.block.allocation(), to.block.allocation(), self.bytes());
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

    fn bytes(&self) -> usize {
        self.len * self.dtype.bytes()
    }
}
