//! The driver's functions, found in its own library, and what its codes mean.
//!
//! The types are cudarc's; the functions are looked up here, because cudarc's panic where one is
//! missing, and because codes are read as numbers: a newer driver returns some that no binding
//! names.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::LazyLock;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction,
    CUfunction_attribute, CUgraph, CUgraphExec, CUjit_option, CUmemAccessDesc, CUmemPool_attribute,
    CUmemoryPool, CUmodule, CUstream, CUstreamCaptureMode, CUuuid,
};
use libloading::Library;

use super::symbols::symbols;
use crate::error::{Error, ErrorKind, Result};

/// A `CUresult`.
pub(super) type Code = c_uint;

const SUCCESS: Code = 0;
const OUT_OF_MEMORY: Code = 2;
pub(super) const PEER_ACCESS_ALREADY_ENABLED: Code = 704;

/// The minimum driver: CUDA 11.4 has PTX ISA 7.0, stream-ordered memory and every function of the
/// table.
const MIN_DRIVER_VERSION: c_int = 11_040;

symbols! {
    /// The functions of the driver that this backend calls, all of them in drivers from CUDA 11.4
    /// on.
    Driver {
        cuInit(c_uint) -> Code;
        cuGetErrorName(Code, *mut *const c_char) -> Code;
        cuGetErrorString(Code, *mut *const c_char) -> Code;
        cuDeviceGetCount(*mut c_int) -> Code;
        cuDeviceGet(*mut CUdevice, c_int) -> Code;
        cuDeviceGetName(*mut c_char, c_int, CUdevice) -> Code;
        cuDeviceGetUuid_v2(*mut CUuuid, CUdevice) -> Code;
        cuDeviceGetPCIBusId(*mut c_char, c_int, CUdevice) -> Code;
        cuDeviceGetAttribute(*mut c_int, CUdevice_attribute, CUdevice) -> Code;
        cuDeviceTotalMem_v2(*mut usize, CUdevice) -> Code;
        cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice) -> Code;
        cuDevicePrimaryCtxRelease_v2(CUdevice) -> Code;
        cuCtxSetCurrent(CUcontext) -> Code;
        cuStreamCreate(*mut CUstream, c_uint) -> Code;
        cuStreamDestroy_v2(CUstream) -> Code;
        cuStreamSynchronize(CUstream) -> Code;
        cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode) -> Code;
        cuStreamEndCapture(CUstream, *mut CUgraph) -> Code;
        cuGraphInstantiateWithFlags(*mut CUgraphExec, CUgraph, c_ulonglong) -> Code;
        cuGraphDestroy(CUgraph) -> Code;
        cuGraphUpload(CUgraphExec, CUstream) -> Code;
        cuGraphLaunch(CUgraphExec, CUstream) -> Code;
        cuGraphExecDestroy(CUgraphExec) -> Code;
        cuDeviceGetDefaultMemPool(*mut CUmemoryPool, CUdevice) -> Code;
        cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, *mut c_void) -> Code;
        cuMemPoolTrimTo(CUmemoryPool, usize) -> Code;
        cuMemPoolSetAccess(CUmemoryPool, *const CUmemAccessDesc, usize) -> Code;
        cuMemAllocAsync(*mut CUdeviceptr, usize, CUstream) -> Code;
        cuMemFreeAsync(CUdeviceptr, CUstream) -> Code;
        cuMemAlloc_v2(*mut CUdeviceptr, usize) -> Code;
        cuMemFree_v2(CUdeviceptr) -> Code;
        cuMemHostAlloc(*mut *mut c_void, usize, c_uint) -> Code;
        cuMemFreeHost(*mut c_void) -> Code;
        cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream) -> Code;
        cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream) -> Code;
        cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream) -> Code;
        cuDeviceCanAccessPeer(*mut c_int, CUdevice, CUdevice) -> Code;
        cuCtxEnablePeerAccess(CUcontext, c_uint) -> Code;
        cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, usize, CUstream) -> Code;
        cuModuleLoadDataEx(*mut CUmodule, *const c_void, c_uint, *mut CUjit_option, *mut *mut c_void) -> Code;
        cuModuleUnload(CUmodule) -> Code;
        cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char) -> Code;
        cuFuncSetAttribute(CUfunction, CUfunction_attribute, c_int) -> Code;
        cuLaunchKernel(
            CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void,
        ) -> Code;
        cuEventCreate(*mut CUevent, c_uint) -> Code;
        cuEventDestroy_v2(CUevent) -> Code;
        cuEventRecord(CUevent, CUstream) -> Code;
        cuEventRecordWithFlags(CUevent, CUstream, c_uint) -> Code;
        cuEventSynchronize(CUevent) -> Code;
        cuEventElapsedTime(*mut f32, CUevent, CUevent) -> Code;
    }
}

/// Calls a driver function and converts its code to an error that names the call.
macro_rules! call {
    ($driver:expr, $name:ident($($argument:expr),* $(,)?)) => {
        $driver.check(stringify!($name), ($driver.$name)($($argument),*))
    };
}

pub(super) use call;

/// The driver, loaded once per process; without one, the reason.
static DRIVER: LazyLock<std::result::Result<(Driver, String), String>> = LazyLock::new(load);

/// The initialised driver and its version, or the reason why there is none.
pub(super) fn driver() -> std::result::Result<(&'static Driver, &'static str), &'static str> {
    match &*DRIVER {
        Ok((driver, version)) => Ok((driver, version)),
        Err(reason) => Err(reason),
    }
}

const LIBRARIES: &[&str] = if cfg!(windows) {
    &["nvcuda.dll"]
} else {
    &["libcuda.so.1", "libcuda.so"]
};

fn load() -> std::result::Result<(Driver, String), String> {
    // SAFETY: the library of this name is NVIDIA's driver, whose initialisers may run at any time.
    let opened = LIBRARIES
        .iter()
        .find_map(|name| unsafe { Library::new(*name) }.ok());
    let library =
        opened.ok_or_else(|| format!("no NVIDIA driver: {} is not here", LIBRARIES[0]))?;
    let version = version_of(&library)?;
    if let Some(fault) = version_fault(version) {
        return Err(fault);
    }
    // SAFETY: the signatures are those of the driver API's header, unchanged since CUDA 11.4.
    let driver = unsafe { Driver::bind(library) }
        .map_err(|name| format!("the driver library lacks {name}"))?;
    // SAFETY: any thread may initialise the driver, any number of times.
    unsafe { call!(driver, cuInit(0)) }.map_err(|error| error.to_string())?;
    Ok((driver, dotted(version)))
}

/// Checked first: an old driver lacks functions of the table.
fn version_of(library: &Library) -> std::result::Result<c_int, String> {
    let mut version = 0;
    // SAFETY: the signature is the header's; the function needs no initialised driver and writes
    // one int.
    let code = unsafe {
        let get = library.get::<unsafe extern "C" fn(*mut c_int) -> Code>("cuDriverGetVersion");
        get.map_err(|_| "the driver library lacks cuDriverGetVersion".to_owned())?(&raw mut version)
    };
    if code == SUCCESS {
        Ok(version)
    } else {
        Err(format!("cuDriverGetVersion: code {code}"))
    }
}

fn version_fault(version: c_int) -> Option<String> {
    (version < MIN_DRIVER_VERSION).then(|| {
        format!(
            "the driver supports CUDA {}, {} is needed",
            dotted(version),
            dotted(MIN_DRIVER_VERSION)
        )
    })
}

fn dotted(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

impl Driver {
    /// Converts a code to an error that names the call.
    pub fn check(&self, call: &str, code: Code) -> Result<()> {
        if code == SUCCESS {
            return Ok(());
        }
        let (name, text) = (
            self.text(self.cuGetErrorName, code),
            self.text(self.cuGetErrorString, code),
        );
        let name = name.unwrap_or_else(|| "unknown code".to_owned());
        Err(Error::new(
            kind_of(code),
            format!("{call}: {name} ({code}): {}", text.unwrap_or_default()),
        ))
    }

    fn text(
        &self,
        ask: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
        code: Code,
    ) -> Option<String> {
        let mut text = std::ptr::null();
        // SAFETY: the driver sets the pointer to one of its constants, or to null for an unknown
        // code.
        unsafe {
            if ask(code, &raw mut text) != SUCCESS || text.is_null() {
                return None;
            }
            Some(CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }
}

/// The kind of a code: faults that destroy the context are a lost device.
fn kind_of(code: Code) -> ErrorKind {
    match code {
        OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        // Deinitialised or unavailable; uncorrectable memory and link errors; a kernel's faults and
        // timeouts; a system that is not ready; unknown.
        4
        | 46
        | 214
        | 220
        | 226
        | 700
        | 702
        | 709
        | 710
        | 714..=719
        | 721
        | 802
        | 806
        | 807
        | 909
        | 911
        | 999 => ErrorKind::DeviceLost,
        _ => ErrorKind::Unsupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_from_cuda_11_4_on_will_do() {
        for (version, fault) in [
            (
                10_020,
                Some("the driver supports CUDA 10.2, 11.4 is needed"),
            ),
            (
                11_030,
                Some("the driver supports CUDA 11.3, 11.4 is needed"),
            ),
            (11_040, None),
            (12_080, None),
            (13_010, None),
        ] {
            assert_eq!(version_fault(version).as_deref(), fault, "{version}");
        }
    }

    #[test]
    fn codes_keep_refusals_lost_devices_and_lack_of_memory_apart() {
        for (code, kind) in [
            (2, ErrorKind::OutOfMemory),
            (1, ErrorKind::Unsupported),
            (100, ErrorKind::Unsupported),
            (218, ErrorKind::Unsupported),
            (222, ErrorKind::Unsupported),
            (701, ErrorKind::Unsupported),
            (700, ErrorKind::DeviceLost),
            (716, ErrorKind::DeviceLost),
            (719, ErrorKind::DeviceLost),
            (999, ErrorKind::DeviceLost),
        ] {
            assert_eq!(kind_of(code), kind, "{code}");
        }
    }

    #[test]
    fn a_driver_or_a_reason_is_found() {
        match driver() {
            Ok((_, version)) => assert!(version.contains('.'), "{version}"),
            Err(reason) => assert!(
                ["no NVIDIA driver", "the driver", "cuInit"]
                    .iter()
                    .any(|start| reason.starts_with(start)),
                "{reason}"
            ),
        }
    }
}
