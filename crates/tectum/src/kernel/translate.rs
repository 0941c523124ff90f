//! A kernel in each language that naga writes for wgpu: SPIR-V, MSL and HLSL, with the options that
//! the devices use.

use super::Kernel;
use crate::dtype::DType;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use crate::error::{Error, Result};

/// A kernel's translations.
#[derive(Debug, Clone)]
pub struct Translations {
    /// SPIR-V 1.3 words, for Vulkan.
    pub spirv: Vec<u32>,
    /// Metal Shading Language 2.4; none for the types of [`VULKAN_ONLY`].
    pub msl: Option<String>,
    /// HLSL for shader model 6.0; none for the types of [`VULKAN_ONLY`].
    pub hlsl: Option<String>,
}

/// Element types that are not written for Metal and DX12, with the reason.
pub const VULKAN_ONLY: &[(DType, &str)] =
    &[(DType::F64, "Metal has no f64, and wgpu has none on DX12")];

impl Kernel {
    /// The kernel as PTX, as the CUDA device has it.
    ///
    /// # Errors
    /// `Invalid` for a module that naga refuses, `Unsupported` naming the construct that PTX does
    /// not cover.
    #[cfg(feature = "cuda")]
    pub fn ptx(&self) -> Result<String> {
        let (module, info) = self.module()?;
        let options = naga_ptx::Options {
            index: naga_ptx::IndexPolicy::Trust,
            zero_workgroup_memory: true,
            ..naga_ptx::Options::default()
        };
        let translated = naga_ptx::translate(&module, &info, "main", &options);
        Ok(translated
            .map_err(|error| {
                Error::unsupported(format!(
                    "kernel {}: {}",
                    self.name,
                    error.with_source(self.wgsl())
                ))
            })?
            .ptx)
    }

    /// Translates the kernel as wgpu does for each API.
    ///
    /// # Errors
    /// `Invalid` naming kernel and language if the module is not valid or cannot be expressed.
    #[cfg(feature = "wgpu")]
    pub fn translate(&self) -> Result<Translations> {
        use naga::back::{hlsl, msl, spv};

        let (module, info) = self.module()?;
        let fault = |language: &str, error: &dyn std::fmt::Display| {
            Error::invalid(format!("kernel {} as {language}: {error}", self.name))
        };
        let spv_options = spv::Options {
            lang_version: (1, 3),
            emit_int_div_checks: true,
            ..spv::Options::default()
        };
        let spirv =
            spv::write_vec(&module, &info, &spv_options, None).map_err(|e| fault("SPIR-V", &e))?;
        if VULKAN_ONLY.iter().any(|(dtype, _)| self.uses(*dtype)) {
            return Ok(Translations {
                spirv,
                msl: None,
                hlsl: None,
            });
        }
        let msl_options = msl::Options {
            lang_version: (2, 4),
            fake_missing_bindings: true,
            ..msl::Options::default()
        };
        let (msl, _) = msl::write_string(
            &module,
            &info,
            &msl_options,
            &msl::PipelineOptions::default(),
        )
        .map_err(|e| fault("MSL", &e))?;
        let hlsl_options = hlsl::Options {
            shader_model: hlsl::ShaderModel::V6_0,
            ..hlsl::Options::default()
        };
        let pipeline_options = hlsl::PipelineOptions::default();
        let mut hlsl = String::new();
        hlsl::Writer::new(&mut hlsl, &hlsl_options, &pipeline_options)
            .write(&module, &info, None)
            .map_err(|e| fault("HLSL", &e))?;
        Ok(Translations {
            spirv,
            msl: Some(msl),
            hlsl: Some(hlsl),
        })
    }
}
