//! What takes too long for every run of CI: some of the slow tests, and `cargo xtask sample`, one of
//! the long checks; others each hour. `cargo xtask test` without `--sample` runs all tests.

use std::path::Path;

use crate::{budget::timed, gpu_kit, mutations, packages, quick, ros2, rotation, test_programs};

/// A run tests one part of so many: of the slow tests, and of the kernels' cases on software
/// adapters and in the interpreter of PTX.
pub const PARTS: usize = 4;

/// Tests that take 10 seconds or more of a run, by package and name.
pub const SLOW_TESTS: &[(&str, &str)] = &[
    (
        "tectum-control",
        "lqr::a_planner_swings_up_and_holds_what_the_regulator_does",
    ),
    (
        "tectum-spiking",
        "tests::learnt::a_weight_of_1_lives_by_the_rule_of_the_older_engine",
    ),
    (
        "tectum-cli",
        "command_line::the_main_job_balances_on_vulkan_with_one_transfer_each_way",
    ),
    (
        "tectum-spiking",
        "tests::learning_networks_on_devices_do_as_the_naive_engine_says",
    ),
    (
        "tectum-programs",
        "lower::tests::library::every_device_is_right_at_every_size",
    ),
    (
        "tectum-control",
        "equations::a_plan_over_equations_agrees_between_devices_and_continues_from_a_snapshot",
    ),
    (
        "tectum-spiking",
        "tests::device_networks_fire_as_the_naive_engine_says",
    ),
    (
        "tectum-transformer",
        "tests::a_text_has_one_vector_in_any_batch",
    ),
    (
        "tectum-field",
        "tests::agreement::every_boundary_and_shape_agrees_with_float64",
    ),
    ("tectum-field", "tests::a_snapshot_goes_on_exactly"),
    ("tectum-cli", "live::the_page_of_a_genome_shows_its_firings"),
    (
        "tectum-cli",
        "bench::a_speedup_compares_two_records_row_by_row",
    ),
    (
        "tectum-control",
        "learning::a_thousand_steps_of_the_body_teach_it_to_within_10_of_the_optimum",
    ),
    (
        "tectum-control",
        "other_rigs::a_hundred_of_a_hundred_rigs_are_swung_up_and_upright_for_90_percent_of_a_minute",
    ),
    (
        "tectum-control",
        "pendulum_regret::mppi_on_the_plant_itself_comes_within_2_of_the_optimum",
    ),
    (
        "tectum-onnx",
        "fuzz::broken_files_are_refused_without_panic",
    ),
    (
        "tectum-cli",
        "spiking::public_genomes_spike_the_same_everywhere",
    ),
    (
        "tectum-transformer",
        "few_plans_serve_every_length_and_are_compiled_once",
    ),
    (
        "tectum-cli",
        "plant::a_rig_without_command_lead_is_identified_and_balanced_by_three_commands",
    ),
    (
        "tectum-cli",
        "receipts::every_run_has_a_receipt_and_names_software",
    ),
    (
        "tectum-graph",
        "tests::derivatives::gradients_of_random_networks_match_central_differences",
    ),
    (
        "tectum-cli",
        "train::a_recording_is_identified_and_trained_from_and_the_twin_inspected",
    ),
    (
        "tectum-cli",
        "receipts::commands_without_a_receipt_of_their_own_mark_software",
    ),
    (
        "tectum-graph",
        "tests::derivatives::second_gradients_of_random_networks_match_central_differences",
    ),
    (
        "tectum-cli",
        "plant::a_cart_geared_the_other_way_is_identified_and_balanced_by_three_commands",
    ),
    (
        "tectum-cli",
        "command_line::verification_passes_on_the_cpu_and_names_the_case_where_nothing_is_computed",
    ),
    (
        "tectum-transformer",
        "cache_errors::errors_over_minilm_are_within_what_is_allowed",
    ),
    (
        "tectum-control",
        "equations::speeds_that_are_not_observed_are_estimated",
    ),
    (
        "tectum-control",
        "translation::every_kernel_translates_to_ptx_that_assembles",
    ),
    (
        "tectum-transformer",
        "decoders::small_models_give_the_scores_and_tokens_of_the_reference",
    ),
    (
        "tectum-transformer",
        "decoders::texts_side_by_side_have_the_scores_of_each_alone",
    ),
    (
        "tectum-control",
        "parser_fuzz::no_input_panics_or_takes_memory_and_errors_name_their_place",
    ),
    (
        "tectum-graph",
        "tests::networks::gradients_of_random_networks_agree_on_vulkan",
    ),
    (
        "tectum-control",
        "learning::from_nothing_it_balances_within_250_steps_in_the_mean_of_20_seeds",
    ),
    (
        "tectum-bench",
        "conformance::functions_stay_within_their_stated_errors_on_vulkan",
    ),
];

/// A check: its name and what runs it.
type Check = (&'static str, fn(&Path) -> Result<(), String>);

/// The long checks.
const CHECKS: [Check; 6] = [
    ("features of each crate", packages::features_of_some),
    ("documentation of each crate", packages::documentation),
    ("packages", packages::build_from_some),
    ("a mutation", |root| {
        mutations::run(root, &["--sample".to_owned(), "1".to_owned()])
    }),
    ("GPU kit", |root| {
        gpu_kit::run(root, &test_programs::build(root)?)
    }),
    ROS2,
];

/// Runs in its hour, and whenever its files changed.
const ROS2: Check = ("ROS 2", ros2::run);

/// The tests of a package that this run leaves to others.
///
/// # Errors
/// As [`rotation::hour`].
pub fn left_out() -> Result<Vec<(&'static str, &'static str)>, String> {
    let part = rotation::hour()? % PARTS;
    let others = SLOW_TESTS.iter().enumerate();
    let others = others.filter(|(index, _)| index % PARTS != part);
    Ok(others.map(|(_, test)| *test).collect())
}

/// The variable that names the part of this run to tests.
///
/// # Errors
/// As [`rotation::hour`].
pub fn part() -> Result<(&'static str, String), String> {
    let number = rotation::hour()? % PARTS + 1;
    Ok(("TECTUM_PART", format!("{number}/{PARTS}")))
}

/// Runs one of the long checks, those of licences and of the compiler, and that of ROS 2 if its files
/// changed.
///
/// # Errors
/// Those of the check.
pub fn run(root: &Path) -> Result<(), String> {
    packages::compiler_and_licences(root)?;
    let mut checks = rotation::of_this_hour(CHECKS.to_vec(), 1)?;
    let is_listed = checks.iter().any(|(name, _)| *name == ROS2.0);
    if !is_listed && ros2::is_touched(&quick::changed_since_landed(root)?) {
        checks.push(ROS2);
    }
    for (name, check) in checks {
        timed(root, name, || check(root))?;
    }
    Ok(())
}
