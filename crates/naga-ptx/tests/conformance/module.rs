//! From a shader's source to a validated module.

use naga::valid::{
    Capabilities, ModuleInfo, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator,
};

/// Parses and validates with every capability.
pub fn validated(source: &str) -> Result<(naga::Module, ModuleInfo), String> {
    validated_with(source, ValidationFlags::all())
}

/// As [`validated`], but without the check of barrier positions.
pub fn validated_but_for_uniformity(source: &str) -> Result<(naga::Module, ModuleInfo), String> {
    validated_with(
        source,
        ValidationFlags::all() - ValidationFlags::CONTROL_FLOW_UNIFORMITY,
    )
}

fn validated_with(
    source: &str,
    flags: ValidationFlags,
) -> Result<(naga::Module, ModuleInfo), String> {
    let capabilities = Capabilities::all();
    let options = naga::front::wgsl::Options {
        parse_doc_comments: false,
        capabilities,
    };
    let module = naga::front::wgsl::Frontend::new_with_options(options).parse(source);
    let module = module.map_err(|error| format!("parsing: {}", error.emit_to_string(source)))?;
    let mut validator = Validator::new(flags, capabilities);
    validator
        .subgroup_stages(ShaderStages::all())
        .subgroup_operations(SubgroupOperationSet::all());
    let info = validator
        .validate(&module)
        .map_err(|error| format!("validating: {}", error.emit_to_string(source)))?;
    Ok((module, info))
}
