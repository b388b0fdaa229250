"""What settings are called in Stable-Baselines3, for those who come from there."""

from collections.abc import Iterable, Mapping

RENAMED: Mapping[str, tuple[str, ...]] = {
    "learning_rate": ("actor_rate", "critic_rate", "rate"),
    "lr": ("actor_rate", "critic_rate", "rate"),
    "buffer_size": ("replay_size",),
    "batch_size": ("minibatch",),
    "gamma": ("discount",),
    "tau": ("target_ratio",),
    "learning_starts": ("warmup",),
    "train_freq": ("actor_interval", "critic_interval", "interval", "horizon"),
    "gradient_steps": ("updates",),
    "action_noise": ("noise",),
    "policy_delay": ("actor_interval",),
    "target_policy_noise": ("target_noise",),
    "n_steps": ("horizon",),
    "n_epochs": ("epochs",),
    "n_critic_updates": ("epochs",),
    "gae_lambda": ("trace",),
    "clip_range": ("clip",),
    "ent_coef": ("entropy_weight",),
    "target_entropy": ("entropy_target",),
    "target_kl": ("divergence",),
    "cg_damping": ("damping",),
    "cg_max_steps": ("products",),
    "line_search_max_iter": ("halvings",),
    "net_arch": ("hidden_layers",),
    "activation_fn": ("hidden", "actor_hidden", "critic_hidden"),
}
"""Our names, of which those count that the algorithm has."""

OTHERWISE: Mapping[str, str] = {
    "policy": "a method brings its networks along, so leave it out; hidden_layers sets their sizes",
    "policy_kwargs": "the networks are settings of their own: hidden_layers sets their sizes, for example (256, 256)",
    "verbose": "learn(steps, progress_bar=True) shows how far it is",
    "tensorboard_log": "learn(steps, run=FOLDER, tensorboard=True) writes TensorBoard's files into the folder",
    "device": "JAX chooses the device; the environment variable JAX_PLATFORMS names another, for example cpu",
    "callback": "learn(steps, callback=...) takes it",
    "total_timesteps": "learn(steps) takes it",
}
"""What is no setting here, and how it is done instead."""


def our_way(name: str, known: Iterable[str]) -> str | None:
    """How an algorithm with the known settings does what Stable-Baselines3 has a keyword for; None: it has none."""
    names = set(known)
    ours = [repr(one) for one in RENAMED.get(name, ()) if one in names]
    if ours:
        return f"this name of Stable-Baselines3 is {' and '.join(ours)} here"
    return f"unlike in Stable-Baselines3, {OTHERWISE[name]}" if name in OTHERWISE else None
