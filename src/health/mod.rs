//! From this machine to [`gpu_health::judge`]: its cards, the kernel's log, and the file in which the daemon publishes.
