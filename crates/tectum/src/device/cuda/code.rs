//! From a kernel to a loaded function: PTX once per process, or once per user where the [`Store`]
//! has it; a module once per context.

use std::ffi::{CString, c_int, c_void};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use cudarc::driver::sys::{CUfunction, CUfunction_attribute, CUjit_option, CUmodule};
use naga_ptx::{BindingKind, IndexPolicy, Options};
use serde::{Deserialize, Serialize};

use super::context::Context;
use super::driver::call;
use crate::content_hash::CodeText;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::launch::{Launch, Region};
use crate::lru_cache::LruCache;
use crate::store::Store;

/// Maximum translations that a process keeps, and maximum modules that a device keeps.
const CAP: usize = 512;
/// Size of the log buffers of the driver's assembler.
const LOG_BYTES: usize = 8 << 10;

/// A kernel's text, and whether read-only buffers go through the non-coherent cache.
fn index_policy(kernel: &Kernel) -> IndexPolicy {
    if kernel.is_trusted() {
        IndexPolicy::Trust
    } else {
        IndexPolicy::Clamp
    }
}

/// The key of a translation in the store.
fn store_key(kernel: &Kernel, read_only_cache: bool) -> String {
    format!(
        "ptx {} {:?} zero {read_only_cache}\n{}",
        naga_ptx::REVISION,
        index_policy(kernel),
        kernel.wgsl()
    )
}

type TranslationKey = (CodeText, bool);

static TRANSLATIONS: LazyLock<Mutex<LruCache<TranslationKey, Arc<Translation>>>> =
    LazyLock::new(|| Mutex::new(LruCache::new(CAP)));

/// A kernel's PTX with its launch facts, the same for every device.
pub(super) struct Translation {
    pub kernel: naga_ptx::Kernel,
    /// The text with its terminating zero, as the driver takes it.
    text: CString,
    entry: CString,
    /// The text as a key of caches.
    ptx: CodeText,
}

impl Translation {
    /// The translation of a kernel, with workgroup memory zeroed; its indices are clamped unless it
    /// is trusted.
    ///
    /// # Errors
    /// `Invalid` for a module that naga refuses, `Unsupported` naming the construct that PTX does
    /// not cover.
    pub fn of(kernel: &Kernel, read_only_cache: bool) -> Result<Arc<Self>> {
        let mut translations = TRANSLATIONS.lock().unwrap_or_else(PoisonError::into_inner);
        translations.get_or_insert_with((kernel.code_text().clone(), read_only_cache), || {
            Self::make(kernel, read_only_cache).map(Arc::new)
        })
    }

    /// From the store, or translated and stored there. The driver assembles it, and caches the
    /// machine code by its own version.
    fn make(kernel: &Kernel, read_only_cache: bool) -> Result<Self> {
        Self::make_with(Store::shared(), kernel, read_only_cache)
    }

    fn make_with(store: Option<&Store>, kernel: &Kernel, read_only_cache: bool) -> Result<Self> {
        let key = store_key(kernel, read_only_cache);
        if let Some(stored) = store
            .and_then(|store| store.get(&key))
            .and_then(|bytes| decode(&bytes))
        {
            crate::log!(debug, kernel = kernel.name(), "kernel found in the cache");
            return Ok(Self::new(stored));
        }
        let translated = Self::translate(kernel, read_only_cache)?;
        crate::log!(
            debug,
            kernel = kernel.name(),
            bytes = translated.ptx.len(),
            "kernel translated to PTX"
        );
        if let Some(store) = store {
            store.put(&key, &encode(&translated));
        }
        Ok(Self::new(translated))
    }

    fn translate(kernel: &Kernel, read_only_cache: bool) -> Result<naga_ptx::Kernel> {
        let (module, info) = kernel.module()?;
        let options = Options {
            index: index_policy(kernel),
            read_only_cache,
            zero_workgroup_memory: true,
            ..Options::default()
        };
        naga_ptx::translate(&module, &info, "main", &options).map_err(|error| {
            Error::unsupported(format!(
                "kernel {}: {}",
                kernel.name(),
                error.with_source(kernel.wgsl())
            ))
        })
    }

    fn new(translated: naga_ptx::Kernel) -> Self {
        let no_zero =
            |text: &str| CString::new(text).expect("invariant: PTX text and names hold no zero");
        let (text, entry) = (no_zero(&translated.ptx), no_zero(&translated.entry));
        let ptx = CodeText::new(translated.ptx.as_str());
        Self {
            kernel: translated,
            text,
            entry,
            ptx,
        }
    }
}

/// The stored form of a translation.
#[derive(Serialize, Deserialize)]
struct StoredTranslation {
    ptx: String,
    entry: String,
    workgroup_size: [u32; 3],
    shared_bytes: [u32; 2],
    /// Group, binding, name, kind and minimum bytes of each.
    bindings: Vec<(u32, u32, Option<String>, u8, u32)>,
}

const KINDS: [BindingKind; 3] = [
    BindingKind::Uniform,
    BindingKind::StorageRead,
    BindingKind::StorageReadWrite,
];

fn encode(kernel: &naga_ptx::Kernel) -> Vec<u8> {
    let kind = |wanted: BindingKind| {
        KINDS
            .iter()
            .position(|kind| *kind == wanted)
            .unwrap_or_default() as u8
    };
    let bindings = kernel.bindings.iter().map(|binding| {
        (
            binding.group,
            binding.binding,
            binding.name.clone(),
            kind(binding.kind),
            binding.min_bytes,
        )
    });
    let stored = StoredTranslation {
        ptx: kernel.ptx.clone(),
        entry: kernel.entry.clone(),
        workgroup_size: kernel.workgroup_size,
        shared_bytes: [kernel.static_shared_bytes, kernel.dynamic_shared_bytes],
        bindings: bindings.collect(),
    };
    postcard::to_extend(&stored, Vec::new())
        .expect("invariant: a translation is plain data, and memory takes all of it")
}

fn decode(bytes: &[u8]) -> Option<naga_ptx::Kernel> {
    let stored: StoredTranslation = postcard::from_bytes(bytes).ok()?;
    let bindings = stored
        .bindings
        .into_iter()
        .map(|(group, binding, name, kind, min_bytes)| {
            Some(naga_ptx::Binding {
                group,
                binding,
                name,
                kind: *KINDS.get(usize::from(kind))?,
                min_bytes,
            })
        });
    let is_text = !stored.ptx.contains('\0') && !stored.entry.contains('\0');
    let [static_shared_bytes, dynamic_shared_bytes] = stored.shared_bytes;
    let bindings = bindings.collect::<Option<Vec<_>>>().filter(|_| is_text)?;
    let StoredTranslation {
        ptx,
        entry,
        workgroup_size,
        ..
    } = stored;
    Some(naga_ptx::Kernel {
        ptx,
        entry,
        workgroup_size,
        static_shared_bytes,
        dynamic_shared_bytes,
        bindings,
    })
}

/// Whether no range that a launch reads lies in memory that it also writes: only then may reads go
/// through the non-coherent cache. `address` gives the device address of a region.
pub(super) fn reads_do_not_alias_writes(launch: &Launch, address: impl Fn(&Region) -> u64) -> bool {
    let ranges: Vec<(std::ops::Range<u64>, bool)> = launch
        .regions
        .iter()
        .zip(launch.kernel.bindings())
        .map(|(region, binding)| {
            let start = address(region);
            (start..start + region.bytes as u64, binding.access.writes())
        })
        .collect();
    let apart =
        |a: &std::ops::Range<u64>, b: &std::ops::Range<u64>| a.end <= b.start || b.end <= a.start;
    ranges
        .iter()
        .filter(|(_, writes)| !writes)
        .all(|(read, _)| {
            ranges
                .iter()
                .filter(|(_, writes)| *writes)
                .all(|(written, _)| apart(read, written))
        })
}

/// A module in a context, unloaded when dropped, with its one function.
pub(super) struct Module {
    context: Arc<Context>,
    module: CUmodule,
    pub function: CUfunction,
}

// SAFETY: the handles are only passed to the driver, with the context current; the driver's
// functions are thread-safe.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// The modules of a device, by their PTX: kernels that differ in name alone share one. A device has
/// one architecture, so the text is the whole key.
pub(super) struct Modules(Mutex<LruCache<CodeText, Arc<Module>>>);

impl Modules {
    pub fn new() -> Self {
        Self(Mutex::new(LruCache::new(CAP)))
    }

    /// The loaded module of a translation; `kernel` names it in errors.
    ///
    /// # Errors
    /// `Unsupported` with the assembler's log for code that the driver refuses or needs more than
    /// the device has.
    pub fn load(
        &self,
        context: &Arc<Context>,
        kernel: &Kernel,
        translation: &Translation,
    ) -> Result<Arc<Module>> {
        check_limits(context, kernel, &translation.kernel)?;
        let mut modules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        modules.get_or_insert_with(translation.ptx.clone(), || {
            let loaded = Module::load(context, translation);
            loaded.map(Arc::new).map_err(|error| {
                error.at(format_args!(
                    "{}: compiling kernel {}",
                    context.info.id,
                    kernel.name()
                ))
            })
        })
    }
}

fn check_limits(context: &Context, kernel: &Kernel, translated: &naga_ptx::Kernel) -> Result<()> {
    let limits = &context.info.limits;
    let size: u32 = translated.workgroup_size.iter().product();
    let shared = translated
        .static_shared_bytes
        .max(translated.dynamic_shared_bytes);
    if size > limits.max_workgroup_size || shared > limits.workgroup_memory_bytes {
        return Err(Error::unsupported(format!(
            "{}: kernel {}: {size} invocations with {shared} bytes of workgroup memory; this device has at most {} and {}",
            context.info.id,
            kernel.name(),
            limits.max_workgroup_size,
            limits.workgroup_memory_bytes
        )));
    }
    Ok(())
}

impl Module {
    fn load(context: &Arc<Context>, translation: &Translation) -> Result<Self> {
        context.bind()?;
        let driver = context.driver;
        let module = assemble(context, &translation.text)?;
        let mut loaded = Self {
            context: context.clone(),
            module,
            function: std::ptr::null_mut(),
        };
        // SAFETY: the module is loaded in the current context, the name ends in a zero, and one
        // handle is written.
        unsafe {
            call!(
                driver,
                cuModuleGetFunction(&raw mut loaded.function, module, translation.entry.as_ptr())
            )
        }?;
        let dynamic = translation.kernel.dynamic_shared_bytes;
        if dynamic > 0 {
            let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is the loaded module's.
            unsafe {
                call!(
                    driver,
                    cuFuncSetAttribute(loaded.function, attribute, dynamic as c_int)
                )
            }?;
        }
        Ok(loaded)
    }
}

/// Assembles PTX for the current context's device.
fn assemble(context: &Context, text: &CString) -> Result<CUmodule> {
    let (mut info, mut errors) = (vec![0u8; LOG_BYTES], vec![0u8; LOG_BYTES]);
    let mut options = [
        CUjit_option::CU_JIT_INFO_LOG_BUFFER,
        CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    // Sizes are passed as values in place of pointers.
    let size = std::ptr::without_provenance_mut::<c_void>(LOG_BYTES);
    let mut values = [
        info.as_mut_ptr().cast::<c_void>(),
        size,
        errors.as_mut_ptr().cast::<c_void>(),
        size,
    ];
    let mut module = std::ptr::null_mut();
    // SAFETY: the caller has bound the context; the text ends in a zero; the logs live until the
    // call returns and are as long as their options say.
    let loaded = unsafe {
        call!(
            context.driver,
            cuModuleLoadDataEx(
                &raw mut module,
                text.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr()
            )
        )
    };
    match loaded {
        Ok(()) => Ok(module),
        Err(error) => Err(error.with_source(Error::unsupported(
            format!("{} {}", log(&errors), log(&info)).trim(),
        ))),
    }
}

/// A log's lines joined into one.
fn log(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join("; ")
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: nothing that runs uses the module: compiled lists hold it and wait for their
            // runs.
            unsafe { (self.context.driver.cuModuleUnload)(self.module) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::elementwise::transfer::COPY;

    #[test]
    fn a_kernel_is_translated_once_for_each_way_to_read() {
        let plain = Translation::of(&COPY, false).expect("translates");
        assert!(Arc::ptr_eq(
            &plain,
            &Translation::of(&COPY, false).expect("translates")
        ));
        let cached = Translation::of(&COPY, true).expect("translates");
        assert!(
            plain.ptx != cached.ptx
                && cached.kernel.ptx.contains(".nc")
                && !plain.kernel.ptx.contains(".nc")
        );
        assert_eq!(
            plain
                .kernel
                .bindings
                .iter()
                .map(|binding| binding.binding)
                .collect::<Vec<_>>(),
            [0, 1, 2]
        );
    }

    #[test]
    fn a_stored_translation_is_reused_and_a_foreign_one_is_rebuilt() {
        let folder = std::env::temp_dir().join(format!("tectum-ptx-{}", std::process::id()));
        let store = Store::new(folder.clone(), 64, 1 << 20);
        let made = Translation::make_with(Some(&store), &COPY, true).expect("translates");
        let files = || {
            std::fs::read_dir(&folder)
                .expect("there")
                .flatten()
                .map(|entry| entry.path())
                .collect::<Vec<_>>()
        };
        assert_eq!(files().len(), 1);
        let stored = Translation::make_with(Some(&store), &COPY, true).expect("found");
        assert_eq!(format!("{:?}", stored.kernel), format!("{:?}", made.kernel));
        assert_eq!(
            (stored.ptx.hash(), stored.entry.clone(), stored.text.clone()),
            (made.ptx.hash(), made.entry.clone(), made.text.clone())
        );
        // The flags are part of the key.
        assert!(
            Translation::make_with(Some(&store), &COPY, false)
                .expect("translates")
                .ptx
                != made.ptx
        );
        // A value that is not a translation, and a file that is not an entry.
        let key = store_key(&COPY, true);
        store.put(&key, b"\x05hello");
        assert_eq!(
            Translation::make_with(Some(&store), &COPY, true)
                .expect("translates again")
                .ptx
                .hash(),
            made.ptx.hash()
        );
        assert!(
            store
                .get(&key)
                .is_some_and(|bytes| decode(&bytes).is_some()),
            "and kept"
        );
        files()
            .iter()
            .for_each(|file| std::fs::write(file, b"half an ent").expect("writable"));
        assert_eq!(
            Translation::make_with(Some(&store), &COPY, true)
                .expect("translates again")
                .ptx
                .hash(),
            made.ptx.hash()
        );
        std::fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    fn every_kernel_has_a_translation_within_the_portable_profile() {
        for kernel in crate::operation::kernels() {
            let translation = Translation::of(&kernel, true).expect("translates");
            let facts = &translation.kernel;
            assert!(
                facts.workgroup_size.iter().product::<u32>() <= 256
                    && facts.dynamic_shared_bytes == 0,
                "{}",
                kernel.name()
            );
            assert!(
                facts
                    .bindings
                    .iter()
                    .all(|binding| binding.binding as usize <= kernel.bindings().len()),
                "{}",
                kernel.name()
            );
        }
    }

    #[test]
    fn reads_of_written_memory_keep_away_from_the_cache() {
        let region = |offset| Region {
            buffer: 0,
            offset,
            bytes: 256,
        };
        let launch = |read, write| Launch {
            kernel: COPY.clone(),
            regions: vec![region(read), region(write)],
            params: vec![64],
            groups: [1, 1],
        };
        for (read, write, apart) in [
            (0, 256, true),
            (256, 0, true),
            (0, 0, false),
            (0, 128, false),
            (255, 0, false),
        ] {
            assert_eq!(
                reads_do_not_alias_writes(&launch(read, write), |region| 4096
                    + region.offset as u64),
                apart,
                "{read} {write}"
            );
        }
    }

    #[test]
    fn logs_end_at_their_zero_and_fit_a_line() {
        assert_eq!(
            log(b"ptxas fatal\n  line 3: unknown\n\0rest"),
            "ptxas fatal; line 3: unknown"
        );
    }
}
