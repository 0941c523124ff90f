//! Matrix products by cuBLASLt, where its library can be loaded: f32 throughout, no TF32, no split
//! of the inner dimension, so that the same device computes the same bits.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, LazyLock};

use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtEpilogue_t, cublasLtMatmulDescAttributes_t as Descriptor,
    cublasLtMatmulPreferenceAttributes_t as Preference, cublasLtReductionScheme_t, cudaDataType_t,
};
use cudarc::driver::sys::{CUdeviceptr, CUstream};
use libloading::Library;

use super::context::Context;
use super::memory::CudaMemory;
use super::product::{Operand, Product};
use super::symbols::symbols;
use crate::error::{Error, Result};

/// Device memory that the library may use while it computes, shared by all products of a device:
/// its stream orders them.
const WORKSPACE_BYTES: usize = 32 << 20;

/// A `cublasStatus_t`.
type Status = c_uint;
/// A `cublasOperation_t`: unchanged, or transposed.
type Operation = c_int;
/// A descriptor's or the library's handle.
type Handle = *mut c_void;

/// `cublasLtMatmulHeuristicResult_t`, its state as a number.
#[repr(C)]
pub(super) struct Heuristic {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    state: Status,
    waves: f32,
    reserved: [c_int; 4],
}

symbols! {
    /// The library's functions that this file calls, with the same signatures from CUDA 11 to 13.
    Functions {
        cublasLtGetVersion() -> usize;
        cublasLtGetStatusString(Status) -> *const c_char;
        cublasLtCreate(*mut Handle) -> Status;
        cublasLtDestroy(Handle) -> Status;
        cublasLtMatmulDescCreate(*mut Handle, c_uint, c_uint) -> Status;
        cublasLtMatmulDescSetAttribute(Handle, c_uint, *const c_void, usize) -> Status;
        cublasLtMatmulDescDestroy(Handle) -> Status;
        cublasLtMatrixLayoutCreate(*mut Handle, c_uint, u64, u64, i64) -> Status;
        cublasLtMatrixLayoutDestroy(Handle) -> Status;
        cublasLtMatmulPreferenceCreate(*mut Handle) -> Status;
        cublasLtMatmulPreferenceSetAttribute(Handle, c_uint, *const c_void, usize) -> Status;
        cublasLtMatmulPreferenceDestroy(Handle) -> Status;
        cublasLtMatmulAlgoGetHeuristic(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Heuristic, *mut c_int,
        ) -> Status;
        cublasLtMatmul(
            Handle, Handle, *const c_void, CUdeviceptr, Handle, CUdeviceptr, Handle, *const c_void, CUdeviceptr, Handle, CUdeviceptr,
            Handle, *const [u64; 8], CUdeviceptr, usize, CUstream,
        ) -> Status;
    }
}

/// The library, looked up once per process.
static FUNCTIONS: LazyLock<Option<Functions>> = LazyLock::new(|| {
    let names: [&str; 3] = if cfg!(windows) {
        [
            "cublasLt64_13.dll",
            "cublasLt64_12.dll",
            "cublasLt64_11.dll",
        ]
    } else {
        [
            "libcublasLt.so.13",
            "libcublasLt.so.12",
            "libcublasLt.so.11",
        ]
    };
    // SAFETY: a library of these names is NVIDIA's, whose initialisers may run at any time and
    // whose functions have the header's signatures.
    names
        .iter()
        .find_map(|name| unsafe { Functions::bind(Library::new(*name).ok()?).ok() })
});

/// The library on a device.
pub(super) struct CublasLt {
    context: Arc<Context>,
    functions: &'static Functions,
    handle: Handle,
    workspace: CudaMemory,
    /// Such as `12.4.5`.
    version: String,
}

// SAFETY: the library's handle may be used from any thread, several at a time.
unsafe impl Send for CublasLt {}
// SAFETY: as above.
unsafe impl Sync for CublasLt {}

impl CublasLt {
    /// The library, if it is installed and supports the device; else products use their kernels.
    pub fn open(context: &Arc<Context>) -> Option<Arc<Self>> {
        let functions = FUNCTIONS.as_ref()?;
        let workspace = CudaMemory::allocate(context, WORKSPACE_BYTES).ok()?;
        let mut handle = null_mut();
        // SAFETY: the allocation bound the context; one handle is written.
        let made = unsafe { (functions.cublasLtCreate)(&raw mut handle) };
        if made != 0 {
            return None;
        }
        // SAFETY: takes no arguments, returns a number.
        let version = dotted(unsafe { (functions.cublasLtGetVersion)() });
        Some(Arc::new(Self {
            context: context.clone(),
            functions,
            handle,
            workspace,
            version,
        }))
    }

    /// The name that a product by this library has in receipts.
    pub fn routine(&self, kernel: &str) -> String {
        format!("{kernel} by cublaslt {}", self.version)
    }

    fn check(&self, call: &str, status: Status) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a constant text, or null.
        let text = unsafe {
            let text = (self.functions.cublasLtGetStatusString)(status);
            if text.is_null() {
                "unknown status".into()
            } else {
                CStr::from_ptr(text).to_string_lossy()
            }
        };
        Err(Error::unsupported(format!(
            "{}: {call}: {text} ({status})",
            self.context.info.id
        )))
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: every product holds the library, so none is left.
            unsafe { (self.functions.cublasLtDestroy)(self.handle) };
        }
    }
}

/// A version of the form major · 10,000 + minor · 100 + patch.
fn dotted(version: usize) -> String {
    format!(
        "{}.{}.{}",
        version / 10_000,
        version % 10_000 / 100,
        version % 100
    )
}

/// A descriptor with the function that destroys it.
struct Owned {
    handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> Status,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: created by the constructor that belongs to `destroy`, and destroyed once.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// Device addresses of a product's operands.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    pub a: CUdeviceptr,
    pub b: CUdeviceptr,
    pub y: CUdeviceptr,
    pub bias: Option<CUdeviceptr>,
    pub residual: Option<CUdeviceptr>,
}

/// A product ready to be enqueued on a stream.
pub(super) struct Matmul {
    descriptor: Owned,
    /// Left, right and result as the library names them: it multiplies the transposes in reverse
    /// order.
    layouts: [Owned; 3],
    algorithm: [u64; 8],
    addresses: Addresses,
    library: Arc<CublasLt>,
}

// SAFETY: descriptors are plain memory of the library's, accessed only through this value.
unsafe impl Send for Matmul {}

impl Matmul {
    /// Describes a product and has the library choose its algorithm.
    ///
    /// # Errors
    /// `Unsupported` with the library's status.
    pub fn new(library: &Arc<CublasLt>, product: &Product, addresses: Addresses) -> Result<Self> {
        library.context.bind()?;
        let descriptor = library.descriptor(product, &addresses)?;
        let (m, n, k) = (
            u64::from(product.m),
            u64::from(product.n),
            u64::from(product.k),
        );
        let layouts = [
            library.layout(n, k, product.b)?,
            library.layout(k, m, product.a)?,
            library.layout(
                n,
                m,
                Operand {
                    transposed: false,
                    leading: product.n,
                },
            )?,
        ];
        let algorithm = library.algorithm(&descriptor, &layouts)?;
        Ok(Self {
            descriptor,
            layouts,
            algorithm,
            addresses,
            library: library.clone(),
        })
    }

    /// Enqueues the product on a stream.
    ///
    /// # Safety
    /// The addresses are valid for the product's shape when the stream reaches it, the stream is
    /// ordered after and before every other product of the device, and this value and its library
    /// outlive the work (and its graph).
    pub unsafe fn enqueue(&self, stream: CUstream) -> Result<()> {
        let Addresses {
            a, b, y, residual, ..
        } = self.addresses;
        let (one, beta) = (1.0f32, if residual.is_some() { 1.0f32 } else { 0.0 });
        let [left, right, result] = self.layouts.each_ref().map(|layout| layout.handle);
        let library = &self.library;
        let workspace = library.workspace.address(0, WORKSPACE_BYTES);
        // SAFETY: the caller guarantees addresses and order; the scalars are read during the call.
        let status = unsafe {
            (library.functions.cublasLtMatmul)(
                library.handle,
                self.descriptor.handle,
                (&raw const one).cast(),
                b,
                left,
                a,
                right,
                (&raw const beta).cast(),
                residual.unwrap_or(y),
                result,
                y,
                result,
                &raw const self.algorithm,
                workspace,
                WORKSPACE_BYTES,
                stream,
            )
        };
        library.check("cublasLtMatmul", status)
    }
}

impl CublasLt {
    fn descriptor(&self, product: &Product, addresses: &Addresses) -> Result<Owned> {
        let mut handle = null_mut();
        let compute = cublasComputeType_t::CUBLAS_COMPUTE_32F as c_uint;
        // SAFETY: one handle is written.
        let status = unsafe {
            (self.functions.cublasLtMatmulDescCreate)(
                &raw mut handle,
                compute,
                cudaDataType_t::CUDA_R_32F as c_uint,
            )
        };
        self.check("cublasLtMatmulDescCreate", status)?;
        let owned = Owned {
            handle,
            destroy: self.functions.cublasLtMatmulDescDestroy,
        };
        self.set(
            &owned,
            Descriptor::CUBLASLT_MATMUL_DESC_TRANSA,
            &Operation::from(product.b.transposed),
        )?;
        self.set(
            &owned,
            Descriptor::CUBLASLT_MATMUL_DESC_TRANSB,
            &Operation::from(product.a.transposed),
        )?;
        if let Some(bias) = addresses.bias {
            self.set(
                &owned,
                Descriptor::CUBLASLT_MATMUL_DESC_EPILOGUE,
                &(cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS as c_uint),
            )?;
            self.set(&owned, Descriptor::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
        Ok(owned)
    }

    fn set<T: bytemuck::Pod>(
        &self,
        descriptor: &Owned,
        attribute: Descriptor,
        value: &T,
    ) -> Result<()> {
        let value = bytemuck::bytes_of(value);
        // SAFETY: the descriptor lives, and the value is read during the call at its given length.
        let status = unsafe {
            (self.functions.cublasLtMatmulDescSetAttribute)(
                descriptor.handle,
                attribute as c_uint,
                value.as_ptr().cast(),
                value.len(),
            )
        };
        self.check("cublasLtMatmulDescSetAttribute", status)
    }

    /// The layout of an operand that is `rows` × `cols` for the library after the requested
    /// transposition.
    fn layout(&self, rows: u64, cols: u64, operand: Operand) -> Result<Owned> {
        let (rows, cols) = if operand.transposed {
            (cols, rows)
        } else {
            (rows, cols)
        };
        let mut handle = null_mut();
        let single = cudaDataType_t::CUDA_R_32F as c_uint;
        // SAFETY: one handle is written.
        let status = unsafe {
            (self.functions.cublasLtMatrixLayoutCreate)(
                &raw mut handle,
                single,
                rows,
                cols,
                i64::from(operand.leading),
            )
        };
        self.check("cublasLtMatrixLayoutCreate", status)?;
        Ok(Owned {
            handle,
            destroy: self.functions.cublasLtMatrixLayoutDestroy,
        })
    }

    /// The library's first choice among the algorithms that add up in one fixed order.
    fn algorithm(
        &self,
        descriptor: &Owned,
        [left, right, result]: &[Owned; 3],
    ) -> Result<[u64; 8]> {
        let preference = self.preference()?;
        let mut heuristic = Heuristic {
            algorithm: [0; 8],
            workspace_bytes: 0,
            state: 0,
            waves: 0.0,
            reserved: [0; 4],
        };
        let mut found = 0;
        // SAFETY: the handles live, and at most the one requested result is written.
        let status = unsafe {
            (self.functions.cublasLtMatmulAlgoGetHeuristic)(
                self.handle,
                descriptor.handle,
                left.handle,
                right.handle,
                result.handle,
                result.handle,
                preference.handle,
                1,
                &raw mut heuristic,
                &raw mut found,
            )
        };
        self.check("cublasLtMatmulAlgoGetHeuristic", status)?;
        self.check("cublasLtMatmulAlgoGetHeuristic", heuristic.state)?;
        if found < 1 || heuristic.workspace_bytes > WORKSPACE_BYTES {
            return Err(Error::unsupported(format!(
                "{}: cublasLtMatmulAlgoGetHeuristic: no algorithm",
                self.context.info.id
            )));
        }
        Ok(heuristic.algorithm)
    }

    fn preference(&self) -> Result<Owned> {
        let mut handle = null_mut();
        // SAFETY: one handle is written.
        self.check("cublasLtMatmulPreferenceCreate", unsafe {
            (self.functions.cublasLtMatmulPreferenceCreate)(&raw mut handle)
        })?;
        let owned = Owned {
            handle,
            destroy: self.functions.cublasLtMatmulPreferenceDestroy,
        };
        let scheme = cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_NONE as c_uint;
        let attributes: [(Preference, &[u8]); 2] = [
            (
                Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                bytemuck::bytes_of(&WORKSPACE_BYTES),
            ),
            (
                Preference::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                bytemuck::bytes_of(&scheme),
            ),
        ];
        for (attribute, value) in attributes {
            // SAFETY: the preference lives, and the value is read during the call at its given
            // length.
            let status = unsafe {
                (self.functions.cublasLtMatmulPreferenceSetAttribute)(
                    handle,
                    attribute as c_uint,
                    value.as_ptr().cast(),
                    value.len(),
                )
            };
            self.check("cublasLtMatmulPreferenceSetAttribute", status)?;
        }
        Ok(owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_three_numbers() {
        for (version, text) in [
            (110_304, "11.3.4"),
            (120_405, "12.4.5"),
            (130_001, "13.0.1"),
        ] {
            assert_eq!(dotted(version), text);
        }
    }

    #[test]
    fn the_result_of_the_heuristic_is_as_large_as_the_librarys() {
        use cudarc::cublaslt::sys::cublasLtMatmulHeuristicResult_t;
        assert_eq!(
            size_of::<Heuristic>(),
            size_of::<cublasLtMatmulHeuristicResult_t>()
        );
        assert_eq!(
            std::mem::offset_of!(Heuristic, state),
            std::mem::offset_of!(cublasLtMatmulHeuristicResult_t, state)
        );
    }
}
