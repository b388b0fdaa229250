"""One-line changes of the mathematics, and the tests that should notice each: the fewest and the fastest."""

# (file below src/feasible, tests below tests/): {name: (before, after)}
TABLE: dict[tuple[str, ...], dict[str, tuple[str, str]]] = {
    ("algorithms/advantages.py", "algorithms/test_advantages.py::test_advantages_are_those_of_a_plain_loop"): {
        "gae-discount": ("reward + discount * jnp", "reward + jnp"),
        "gae-lambda": ("discount * trace)", "discount)"),
        "gae-termination": ("jnp.where(terminated, 0.0, next_value)", "next_value"),
        "gae-end-of-episode": ("jnp.where(ended, 0.0,", "jnp.where(terminated, 0.0,"),
    },
    ("algorithms/statistics.py", "algorithms/test_advantages.py::test_statistics_are_numpys"): {
        "observation-variance": ("shift * (obs - mean)", "shift * shift"),
        "observation-clip": ("-LIMIT, LIMIT)", "-LIMIT, 2 * LIMIT)"),
    },
    (
        "algorithms/statistics.py",
        "algorithms/test_normalised.py::test_critic_loss_is_that_of_a_plain_loop_over_normalised_observations",
    ): {
        "observation-shrunk": ('1.0 if normalised == "shrunk"', '0.0 if normalised == "shrunk"'),
        "least-deviation": ("count, self.least)", "count)"),
    },
    ("algorithms/conjugate_gradient.py", "algorithms/test_advantages.py::test_conjugate_gradient_is_a_dense_solve"): {
        "conjugate-direction": ("_ratio(left @ left, size)", "_ratio(size, left @ left)"),
    },
    ("algorithms/nets.py", "algorithms/test_nets.py::test_blending_moves_every_weight_by_the_ratio"): {
        "target-blend": ("t + ratio * (o - t)", "o + ratio * (t - o)"),
    },
    ("algorithms/ddpg.py", "algorithms/test_ddpg.py::test_the_critic_s_loss_is_that_of_a_plain_loop[optlayer]"): {
        "discount": ("self.discount * batch.continues", "batch.continues"),
        "termination-mask": ("self.discount * batch.continues", "self.discount"),
        "target-action": ("self._valued(self.rule.target_action(region, action), action)", "action"),
        "stored-action": ("self._valued(batch.executed, batch.proposed)", "batch.proposed"),
    },
    (
        "algorithms/ddpg.py",
        "algorithms/test_ddpg.py::test_of_two_critics_the_target_takes_the_lesser_at_a_noisy_action",
    ): {
        "twin-minimum": ("jnp.min(state.target_critic.values", "jnp.max(state.target_critic.values"),
        "target-noise-clip": ("clip(-NOISE_REACH, NOISE_REACH)", "clip(-NOISE_REACH)"),
    },
    (
        "algorithms/ddpg.py",
        "algorithms/test_ddpg.py::test_shaping_takes_the_distance_to_the_projection_off_the_reward",
    ): {
        "shaping-sign": ("reward - self.shaping *", "reward + self.shaping *"),
    },
    (
        "algorithms/ddpg.py",
        "algorithms/test_ddpg.py::test_with_critics_in_units_of_the_box_an_update_has_no_unit",
    ): {
        "units-asked": ("state.critic(x, spec.judged(a, self.critic_units))", "state.critic(x, a)"),
        "units-target": (
            "state.target_critic.values(x, spec.judged(action, self.critic_units))",
            "state.target_critic.values(x, action)",
        ),
    },
    ("algorithms/soft.py", "algorithms/test_sac.py::test_the_automatic_entropy_has_no_unit[squash]"): {
        "entropy-unit": ("self.dimensions(spec) * jnp.mean(jnp.log(spec.half))", "0.0 * jnp.mean(spec.half)"),
    },
    ("algorithms/sac.py", "algorithms/test_sac.py::test_the_automatic_entropy_has_no_unit"): {
        "soft-target-unit": ("drawn.log_density + self.log_unit(spec)", "drawn.log_density"),
    },
    ("algorithms/aram.py", "algorithms/test_aram.py::test_the_entropy_in_the_targets_has_no_unit"): {
        "rejected-target-unit": ("(density + self.log_unit(spec))", "density"),
    },
    ("algorithms/ddpg.py", "algorithms/test_ddpg.py::TestUpdate"): {
        "target-actor": ("blend(targets, (actor, critic),", "blend(targets, (actor, targets[1]),"),
        "target-critic": ("blend(targets, (actor, critic),", "blend(targets, (targets[0], critic),"),
    },
    ("algorithms/ddpg.py", "algorithms/test_ddpg.py::test_delayed_targets_follow_only_with_the_actor"): {
        "delayed-targets": ('if "actor" in due or not self.delayed_targets:', "if True:"),
    },
    (
        "algorithms/ddpg.py",
        "algorithms/test_ddpg.py::test_a_critic_of_proposals_learns_from_them_and_from_the_target_s_output",
    ): {
        "critic-at": ("self._valued(batch.executed, batch.proposed)", "batch.executed"),
        "target-at": (
            "self._valued(self.rule.target_action(region, action), action)",
            "self.rule.target_action(region, action)",
        ),
        "warm-up-of-proposals": (
            "return self._valued(super().warmup_proposal(spec, obs, key), in_the_box(spec, key))",
            "return super().warmup_proposal(spec, obs, key)",
        ),
    },
    (
        "algorithms/ddpg.py",
        "algorithms/test_ddpg.py::test_the_penalty_is_the_mean_distance_of_outputs_from_their_sets",
    ): {
        "penalty-sign": ("loss + self.penalty *", "loss - self.penalty *"),
    },
    (
        "algorithms/maps.py",
        "algorithms/test_maps.py::test_derivatives_are_those_of_differences[radial-ball]",
        "algorithms/test_maps.py::test_inside_alpha_changes_nothing_and_radial_goes_a_hyperbolic_tangent_of_the_way[ball]",
    ): {
        "radial-series": ("1.0 - jnp.square(g) / 3.0", "1.0 - jnp.square(g) / 3e-3"),
        "radial-ratio": ("jnp.tanh(far) / far)", "jnp.tanh(far))"),
        "alpha-inside": ("hull.lifted(y)), 1.0)", "hull.lifted(y)), 0.5)"),
    },
    (
        "algorithms/maps.py",
        "algorithms/test_relative.py::test_maps_go_out_from_the_reference_and_stay_inside[integers]",
    ): {
        "reference-inwards": ("NEAR * (region.project(reference) - centre)", "(region.project(reference) - centre)"),
    },
    ("algorithms/ddpg.py", "algorithms/test_relative.py::test_actor_and_critic_learn_at_actions_that_are_relative"): {
        "relative-actor": (
            "self.action_map.action(at, region, output)",
            "self.action_map.action(spec, region, output)",
        ),
        "relative-target": (
            "self.action_map.target(at, region, output, deviation * noise)",
            "self.action_map.target(spec, region, output, deviation * noise)",
        ),
    },
    (
        "algorithms/densities.py",
        "algorithms/test_maps.py::test_the_log_determinant_of_radial_is_that_of_its_jacobian[ball]",
    ): {
        "radial-determinant": ("(dim - 1) * jnp.log(tanh_ratio(g))", "dim * jnp.log(tanh_ratio(g))"),
    },
    (
        "algorithms/densities.py",
        "algorithms/test_densities.py::test_the_density_of_alpha_is_one_over_the_set_and_its_boundary[weighted-l1-2]",
    ): {
        "surface-measure": ("+ beyond - 0.5 * jnp.log", "+ beyond + 0.5 * jnp.log"),
        "ray-dimension": ("more, e = b.shape[0] - 1.0,", "more, e = b.shape[0] - 0.0,"),
    },
    (
        "algorithms/densities.py",
        "algorithms/test_densities.py::test_derivatives_of_the_density_on_the_boundary_are_those_of_finite_differences",
    ): {
        "moving-limit": ("jnp.where(start > least, start, least)", "jnp.maximum(start, least)"),
        "noise-across": ("- 0.5 * jnp.vdot(across, across)", "- 0.5 * jax.lax.stop_gradient(jnp.vdot(across, across))"),
    },
    (
        "algorithms/truncated.py",
        "algorithms/test_densities.py::test_gradients_through_restricted_samples_are_those_of_quadrature",
    ): {
        "choice-of-direction": ("return (fixed - others) *", "return 0.0 * (fixed - others) *"),
        "radius-derivative": ("(log_level - jax.lax.stop_gradient(log_level))", "0.0 * log_level"),
    },
    (
        "algorithms/truncated.py",
        "algorithms/test_densities.py::test_the_entropy_of_a_restricted_gaussian_is_that_of_its_density",
    ): {
        "restricted-entropy": ("log_chi(self.exits, d + 2)", "log_chi(self.exits, d + 1)"),
        "share-inside": ("- math.log(len(self.directions))", ""),
    },
    ("algorithms/aram.py", "algorithms/test_aram.py::test_the_first_accepted_draw_is_executed"): {
        "aram-first-accepted": ("jnp.argmax(accepted), count)", "jnp.argmin(accepted), count)"),
    },
    ("algorithms/aram.py", "algorithms/test_aram.py::test_losses_are_those_of_a_plain_loop"): {
        "aram-smaller-twin": ("first @ preference <= second @ preference", "first[0] <= second[0]"),
        "aram-entropy": ("return least - jnp.exp", "return least + jnp.exp"),
    },
    (
        "algorithms/betas.py",
        "algorithms/test_sequential.py::test_draws_at_an_end_count_as_all_that_are_nearer_to_it[shape0]",
    ): {
        "mass-at-the-end": ("each - ends - self._log_width", "each - self._log_width"),
        "entropy-at-the-end": ("low * (1.0 / a - 1.0 + jnp.log(a))", "low * (1.0 / a + jnp.log(a))"),
        "divergence-at-the-end": ("- 1.0 - jnp.log(c / a))", "- jnp.log(c / a))"),
    },
    ("algorithms/intervals.py", "algorithms/test_sequential.py::test_intervals_are_those_of_linear_programs"): {
        "interval-of-an-allocation": ("jnp.maximum(region.low[entry], least)", "region.low[entry]"),
    },
    ("algorithms/replay.py", "algorithms/test_replay.py::test_draws_are_uniform_over_what_is_stored"): {
        "replay-range": ("jnp.minimum(replay.count, replay.capacity)", "jnp.asarray(replay.capacity)"),
    },
    ("algorithms/replay.py", "algorithms/test_ddpg.py::test_only_termination_is_stored"): {
        "time-limit": ("transition.terminated.astype", "(transition.terminated | transition.truncated).astype"),
    },
    ("algorithms/actor_rules.py", "algorithms/test_frank_wolfe_steps.py::test_several_steps_are_a_plain_loop[1]"): {
        "frank-wolfe-sign": ("feasible_set.maximise_linear(g)", "feasible_set.maximise_linear(-g)"),
        "frank-wolfe-start": ("start = feasible_set.project(proposed)", "start = proposed"),
        "frank-wolfe-step": ("return high\n", "return 0.5 * high\n"),
        "way-back": ("moved + self.inside * (start - proposed)", "moved"),
    },
    (
        "algorithms/actor_rules.py",
        "algorithms/test_actor_rules.py::test_through_projection_pulls_back_by_the_jacobian[ball]",
    ): {
        "pull-back": ("(pulled,) = pull_back(g)", "pulled = g"),
    },
    ("algorithms/away_steps.py", "algorithms/test_frank_wolfe_steps.py::test_away_steps_are_a_plain_loop"): {
        "away-corner": (
            "jnp.argmin(jnp.where(self.weights > 0, self.corners @ gradient, jnp.inf))",
            "jnp.argmax(jnp.where(self.weights > 0, self.corners @ gradient, -jnp.inf))",
        ),
        "away-longest": ("held / jnp.where(held < 1, 1 - held, 1)", "held"),
    },
    (
        "algorithms/gaussian.py",
        "algorithms/test_gaussian.py::test_clipped_density_is_density_inside_and_tail_probability_outside",
    ): {
        "capg-mass": ("jnp.where(x < clipped, below, above)", "jnp.where(x < clipped, above, below)"),
        "capg-inside": ("jnp.where(x == clipped, _log_densities(self._noise(x), self.log_std), beyond)", "beyond"),
    },
    ("algorithms/gaussian.py", "algorithms/test_sac.py::test_log_density_is_that_of_the_change_of_variables"): {
        "sac-density": (
            "gaussian_log_density(noise, log_std) - jnp.sum(stretched)",
            "gaussian_log_density(noise, log_std)",
        ),
    },
    ("algorithms/sac.py", "algorithms/test_sac.py::test_critic_loss_is_that_of_a_plain_loop"): {
        "sac-discount": ("self.discount * batch.continues", "batch.continues"),
        "sac-termination": ("self.discount * batch.continues", "self.discount"),
        "sac-twin-minimum": ("jnp.minimum(first, second)", "jnp.maximum(first, second)"),
        "sac-entropy": ("x, action) - jnp.exp(state.log_weight)", "x, action) + jnp.exp(state.log_weight)"),
    },
    ("algorithms/base.py", "algorithms/test_sac.py::test_the_automatic_entropy_leaves_out_coordinates_without_room"): {
        "entropy-no-room": ("jnp.where(half > 0, half, 1.0)", "half"),
        "entropy-half": ("half = 0.5 * (self.high - self.low)", "half = self.high - self.low"),
    },
    ("algorithms/ppo.py", "algorithms/test_policy_losses.py::test_the_clipped_surrogate_of_ppo"): {
        "ppo-upper-clip": ("1.0 + self.clip)", "2.0 + self.clip)"),
        "ppo-lower-clip": ("1.0 - self.clip,", "-self.clip,"),
        "ppo-minimum": ("jnp.minimum(ratio * advantage", "jnp.maximum(ratio * advantage"),
        "ppo-entropy": ("- self.entropy_weight * entropy", "+ self.entropy_weight * entropy"),
    },
    ("algorithms/trpo.py", "algorithms/test_on_policy.py::test_trust_region_holds_and_the_surrogate_grows"): {
        "trpo-divergence": ("(divergence <= self.divergence) & (surrogate > before)", "surrogate > before"),
        "trpo-sign": ("conjugate_gradient(damped, gradient,", "conjugate_gradient(damped, -gradient,"),
        "trpo-length": ("jnp.sqrt(2.0 * self.divergence", "jnp.sqrt(0.02 * self.divergence"),
    },
    ("algorithms/trpo.py", "algorithms/test_on_policy.py::test_fisher_product_is_that_of_the_dense_matrix"): {
        "fisher-spread": ("2.0 * moved.log_std / count", "moved.log_std / count"),
    },
    ("algorithms/focops.py", "algorithms/test_on_policy.py::test_the_multiplier_follows_the_cost"): {
        "focops-multiplier": (
            "jnp.clip(state.multipliers + self.multiplier_rate * cost, 0.0,",
            "jnp.clip(state.multipliers, 0.0,",
        ),
        "focops-multiplier-sign": (
            "state.multipliers + self.multiplier_rate",
            "state.multipliers - self.multiplier_rate",
        ),
        "focops-episode": (
            "return (1.0 - self.discount**spec.episode_length) / (1.0 - self.discount)",
            "return 1.0 / (1.0 - self.discount)",
        ),
    },
    ("algorithms/focops.py", "algorithms/test_on_policy.py::test_a_multiplier_makes_costly_actions_rarer"): {
        "focops-cost-sign": ("-multipliers])", "multipliers])"),
    },
    ("algorithms/focops.py", "algorithms/test_policy_losses.py::test_the_penalised_surrogate_of_focops"): {
        "focops-reach": ("jnp.where(near, each, 0.0)", "each"),
        "focops-temperature": ("batch.advantages[:, 0] / self.temperature", "batch.advantages[:, 0]"),
        "focops-divergence": ("normal.divergence(batch.before)\n", "batch.before.divergence(normal)\n"),
    },
    (
        "envs/bike_sharing/demand.py",
        "envs/test_bike_sharing_env.py::test_demand_is_uniform_on_5_to_24_and_zero_on_the_diagonal",
    ): {
        "demand-draw": ("np.uint64(high - low + 1)", "np.uint64(high - low)"),
        "demand-low": ("] = low + np.int64", "] = np.int64"),
    },
    ("envs/bike_sharing/dynamics.py", "envs/test_bike_sharing_dynamics.py::test_shortage_by_hand"): {
        "bike-shortage": (
            "flows[copy, origin, max(last, 0)] += held - total",
            "flows[copy, origin, max(last, 0)] += total - held",
        ),
    },
    ("envs/network/simulator.py", "envs/test_network_simulator.py::test_equals_the_plain_event_loop[0-0.02]"): {
        "packet-drop": ("server = servers + ONE\n", "server = servers\n"),
        "packet-queue": ("oldest] <= now", "oldest] <= end"),
    },
    ("run/folder.py", "run/test_train.py::test_killed_at_random_steps_it_ends_the_same"): {
        "metrics-cut": ("os.truncate(self.metrics, size)", "os.truncate(self.metrics, there)"),
    },
    (
        "run/drive/plant.py",
        "run/test_own_tasks.py::TestPython::test_stopped_by_its_callback_and_resumed_it_ends_the_same",
    ): {
        "beginning-unseeded": (
            "elif ended:\n            seen = self._restart([_episode_seed(self.awaited, step)], step)[0]",
            "elif ended:\n            seen, _ = restarted(self.env, self._shape, step)",
        ),
    },
    (
        "run/drive/plant.py",
        "run/test_odd_environments.py::test_the_last_observation_of_an_episode_is_what_its_last_step_led_to[single]",
    ): {
        "last-observation": ("next_obs = np.array(next_obs)", "pass"),
    },
    (
        "catalogue/task.py",
        "run/test_odd_environments.py::test_the_last_observation_of_an_episode_is_what_its_last_step_led_to",
    ): {
        "last-observation-of-a-copy": ("deepcopy(obs) if terminated or truncated else obs", "obs"),
    },
    (
        "constraints/action_box.py",
        "run/test_odd_environments.py::test_every_executed_action_is_in_the_action_space_to_the_last_bit",
    ): {
        "to-the-last-bit": ("inside = jnp.clip(action, low, high)", "inside = action"),
    },
    (
        "algorithms/base.py",
        "run/test_odd_environments.py::test_a_set_that_shrinks_to_a_point_is_refused_in_the_warm_up",
    ): {
        "room-in-the-warm-up": ("if able is not None:", "if able is None:"),
    },
    ("run/disk/replay.py", "run/test_damage.py::test_a_damaged_checkpoint_is_refused_with_advice_that_works"): {
        "checksum": ("if zlib.crc32(contents) != told:", "if False:"),
    },
    ("run/drive/population.py", "run/population/test_training.py::test_every_run_is_the_run_that_it_would_be_alone"): {
        "report-of-another-part": ("(part or parts) - 1", "part"),
    },
    (
        "run/drive/wire.py",
        "run/test_plant.py::test_a_single_environment_is_a_row_with_its_last_and_its_first_observations",
    ): {
        "packet-seen": (
            "packets[:, :size], packets[:, size : 2 * size] = next_obs, seen",
            "packets[:, :size], packets[:, size : 2 * size] = seen, next_obs",
        ),
    },
    ("run/drive/tally.py", "run/test_tally.py::test_infeasible_proposals_are_counted_one_by_one_after_the_warmup"): {
        "tally-warmup": ("self._warmups <= np.asarray(steps)[:, None]", "self._warmups < np.asarray(steps)[:, None]"),
    },
    ("sets/polytope.py", "sets/test_pull_in.py::test_the_answer_of_a_solver_that_stopped_early_is_inside[polytope]"): {
        "polytope-pull-in": ("return with_tangent_of(a, self.pulled_in(a))", "return a"),
        "polytope-pull-in-best": ("return self.pulled_in(highest_in_polytope(", "return (highest_in_polytope("),
    },
    (
        "sets/intersection.py",
        "sets/test_pull_in.py::test_the_answer_of_a_solver_that_stopped_early_is_inside[intersection]",
    ): {
        "intersection-pull-in": ("a = with_tangent_of(a, self._pulled_in(a, there))", ""),
        "intersection-pull-in-best": ("best = self._pulled_in(best, self._violations(best[None])[0])", ""),
    },
    (
        "sets/ellipsoid.py",
        "sets/test_pull_in.py::test_the_answer_of_a_solver_that_stopped_early_is_inside[ellipsoid]",
    ): {
        "ellipsoid-pull-in": ("return with_tangent_of(a, self._scaled_in(a))", "return a"),
    },
    ("sets/base.py", "sets/test_scales.py::test_a_limit_may_be_in_any_unit[1e-09]"): {
        "violation-unit": ("return residuals / jnp.where(slopes > 0, slopes, 1.0)", "return residuals"),
    },
    ("sets/ellipsoid.py", "sets/test_scales.py::test_a_limit_may_be_in_any_unit[1e-09]"): {
        "energy-unit": ("residuals.at[0].divide(jnp.where(steep > 0, steep, 1.0))", "residuals"),
    },
    ("sets/half_space.py", "sets/test_scales.py::test_a_set_is_empty_in_any_unit[1e-09]"): {
        "emptiness-unit": ("TOLERANCE * self.scale * jnp.linalg.norm(self.weights)", "TOLERANCE * self.scale"),
    },
    ("sets/integer_allocation.py", "sets/test_against_reference.py::test_integers_are_ranked_in_exact_arithmetic"): {
        "integer-count": ("rank < wanted", "rank <= wanted"),
    },
    ("solve/exact.py", "sets/test_against_reference.py::test_integers_are_ranked_in_exact_arithmetic"): {
        "integer-rounding": (
            "return difference, (x - (difference - shift)) - (y + shift)",
            "return difference, jnp.zeros_like(difference)",
        ),
    },
    ("sets/polytope.py", "sets/test_properties.py::test_answers[together-6]"): {
        "polytope-exit": ("rising = (speed > 0) &", "rising = (speed < 0) &"),
    },
    ("sets/ball.py", "sets/test_properties.py::test_answers[together-6]"): {
        "ball-exit": ("half_chord - along", "half_chord + along"),
    },
    ("solve/qp.py", "solve/test_qp.py::test_the_slope_is_the_projector_along_the_rows_that_bind[few rows-0]"): {
        "polytope-jacobian": ("working.null @ (pulled - start)", "(pulled - start)"),
    },
    (
        "solve/qp.py",
        "solve/test_qp.py::test_what_is_missing_to_z_is_a_combination_of_rows_that_bind[float64-few rows-0]",
    ): {
        "polytope-multipliers": ("jnp.minimum(full, partial)", "full"),
    },
    ("solve/lp.py", "solve/test_lp.py::test_the_climb_ends_at_the_maximum[float64-0]"): {
        "climb-release": ("(multipliers[loser] < -flat)", "(multipliers[loser] < -1e6)"),
    },
    ("solve/lp.py", "sets/test_rounding.py::test_wedges_have_a_centre[float32-0.001-0.01-1e-05]"): {
        "climb-once": ("working.null @ (working.null @ g)", "working.null @ g"),
    },
    ("solve/lp.py", "sets/test_rounding.py::test_wedges_have_a_centre[float32-0.001-0.0001-1e-05]"): {
        "vertex-of-rounding": ("missed(stop_gradient(vertex)) <= missed(x)", "missed(x) <= jnp.inf"),
    },
    ("solve/working_set.py", "sets/test_rounding.py::test_wedges_have_a_centre[float32-0.001-0.01-1e-05]"): {
        "working-set-once": ("self.null @ (self.null @ row)", "self.null @ row"),
    },
    (
        "solve/working_set.py",
        "solve/test_working_set.py::test_directions_of_rows_that_are_let_go_leave_the_others_held[float64]",
    ): {
        "freed-direction": ("free = free - jnp.where(held, rows @ free, 0.0) @ inverse", "free = 1.0 * free"),
    },
    ("solve/tangent.py", "solve/test_tangent.py::test_a_far_point_does_not_take_the_value_along"): {
        "tangent-of-the-value": ("return primals[1], tangents[0]", "return primals[1], tangents[1]"),
    },
    ("solve/lp.py", "solve/test_lp.py::test_the_centre_is_that_of_a_largest_ball[float64-0]"): {
        "centre-widths": (
            "rows @ hold_equalities(rows, equalities).null",
            "0.5 * rows @ hold_equalities(rows, equalities).null",
        ),
    },
    (
        "solve/working_set.py",
        "solve/test_working_set.py::test_rows_that_come_and_go_leave_the_pseudo_inverse[float64]",
    ): {
        "working-set-drop": ("self.null + jnp.outer(free, freed)", "self.null"),
    },
    (
        "solve/breakpoints.py",
        "solve/test_breakpoints.py::test_the_nearest_point_has_the_price_that_brentq_finds[float64-6]",
    ): {
        "budget-price": (
            "jnp.where(f, w**2, 0.0) for f, w in zip(free, live.weights",
            "jnp.where(f, w, 0.0) for f, w in zip(free, live.weights",
        ),
    },
    ("solve/breakpoints.py", "solve/test_breakpoints.py::test_slopes_are_those_of_the_free_coordinates"): {
        "budget-slope": (
            "w * x for w, x in zip(live.weights, placed, strict=True)",
            "w * x for w, x in zip(fixed.weights, stop_gradient(placed), strict=True)",
        ),
    },
    (
        "solve/breakpoints.py",
        "solve/test_breakpoints.py::test_slopes_in_weights_bounds_and_budget_are_those_of_differences[True]",
    ): {
        "budget-slope-in-weights": (
            "jnp.where(f, w**2, 0.0) for f, w in zip(free, live.weights",
            "jnp.where(f, w**2, 0.0) for f, w in zip(free, fixed.weights",
        ),
    },
    ("solve/breakpoints.py", "solve/test_breakpoints.py::test_filling_by_worth_solves_the_linear_program[float64-6]"): {
        "knapsack-order": ("ratio[None, :] > ratio[:, None]", "ratio[None, :] < ratio[:, None]"),
    },
    (
        "solve/convex_load.py",
        "solve/test_breakpoints.py::test_the_exit_of_a_convex_load_is_where_bisection_finds_it[float64]",
    ): {
        "budget-exit": ("start + room / jnp.where(slope > 0", "room / jnp.where(slope > 0"),
    },
    (
        "solve/convex_load.py",
        "sets/test_exit_derivatives.py::test_derivatives_are_those_of_finite_differences[power]",
    ): {
        "budget-exit-slope": ("begin + 0.5 * (end - begin)", "begin + 0.0 * (end - begin)"),
    },
    (
        "sets/ellipsoid.py",
        "sets/test_exit_derivatives.py::test_derivatives_along_slow_and_fast_directions_are_finite_and_right[power_and_heat]",
    ): {
        "ellipsoid-slow-exit": ("(box_ends > 0) & jnp.isfinite(box_ends), box_ends, 1.0", "box_ends > 0, 1.0, 1.0"),
    },
    (
        "paper/as_authors/algorithms.py",
        "paper/test_as_authors_algorithms.py::test_agents_with_other_departures_are_one_program",
    ): {
        "merged-targets": ("partial(jnp.where, self.targets_apart)", "partial(jnp.where, True)"),
        "merged-limits": ("past_first & self.limits_terminate)", "past_first)"),
        "merged-noise": ("jnp.where(self.noise_clipped_alone, output", "jnp.where(self.limits_terminate, output"),
        "merged-warmup": ("jnp.where(self.warmup_in_box, in_the_box", "jnp.where(self.targets_apart, in_the_box"),
        "merged-batches": ("jnp.where(self.batches_apart, own, key)", "own"),
    },
    ("paper/price.py", "paper/test_price.py"): {
        "price-variation": ("theirs.apart[None] + variation)", "theirs.apart[None])"),
        "price-overflow": ("(system.costs.overflow + price)", "price"),
        "price-hub": ("np.full(len(hub), 0.5 * stock)", "np.full(len(hub), 0.25 * stock)"),
    },
    (
        "sets/half_space.py",
        "sets/test_rounding.py::test_where_a_ray_leaves_a_half_space_before_its_box_by_little_tolerances_do_not_see_it",
    ): {
        "half-space-exit": ("min(64 * jnp.finfo(self.dtype).eps * self.dim, 0.5 * TOLERANCE)", "10 * TOLERANCE"),
    },
    ("solve/conic.py", "sets/test_cones.py::test_projection_on_a_cone_is_moreau_s"): {
        "cone-height": ("0.5 * (length + head)", "length"),
    },
    (
        "solve/splitting.py",
        "solve/test_splitting.py::test_answers_are_in_all_parts_and_as_good_as_clarabel_s[float64]",
    ): {
        "splitting-reflection": ("nearest(2.0 * seen - copies) - seen", "nearest(seen - copies) - seen"),
    },
}
