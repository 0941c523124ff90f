//! A case as PTX: its translation, and the data that every runner of PTX needs.

use naga_ptx::{BindingKind, IndexPolicy, Kernel, Options};

use crate::case::{BufferKind, Case, Scope};
use crate::module;

/// The ways in which cases are translated.
pub const VARIANTS: [Variant; 2] = [
    Variant {
        name: "clamped",
        index: IndexPolicy::Clamp,
        read_only_cache: false,
    },
    Variant {
        name: "trusted",
        index: IndexPolicy::Trust,
        read_only_cache: true,
    },
];

/// A set of translation options.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    pub name: &'static str,
    index: IndexPolicy,
    read_only_cache: bool,
}

impl Variant {
    /// Whether the case's result is determined with these options.
    pub fn determines(self, case: &Case) -> bool {
        self.index == IndexPolicy::Clamp || case.scope != Scope::PtxClamped
    }

    /// Translates a case and checks the data next to the text.
    pub fn translate(self, case: &Case) -> Result<Kernel, String> {
        let (module, info) = module::validated(&case.source)?;
        let constants = case
            .constants
            .iter()
            .map(|&(name, value)| (name.to_owned(), value))
            .collect();
        let options = Options {
            index: self.index,
            read_only_cache: self.read_only_cache,
            constants,
            ..Options::default()
        };
        let kernel = naga_ptx::translate(&module, &info, "main", &options)
            .map_err(|error| error.with_source(&case.source))?;
        check(case, &kernel)?;
        Ok(kernel)
    }
}

fn check(case: &Case, kernel: &Kernel) -> Result<(), String> {
    if !kernel.ptx.ends_with('\n') || kernel.ptx.contains('\0') {
        return Err("the text has to end in a newline and to hold no NUL".to_owned());
    }
    for binding in &kernel.bindings {
        let buffer = case
            .buffers
            .get(binding.binding as usize)
            .ok_or(format!("no buffer for {binding:?}"))?;
        let kind = match buffer.kind {
            BufferKind::Uniform => BindingKind::Uniform,
            BufferKind::Read => BindingKind::StorageRead,
            BufferKind::ReadWrite => BindingKind::StorageReadWrite,
        };
        if binding.kind != kind || binding.min_bytes as usize > buffer.bytes.len() {
            return Err(format!(
                "{binding:?} for a buffer of {} bytes, {kind:?}",
                buffer.bytes.len()
            ));
        }
    }
    Ok(())
}
