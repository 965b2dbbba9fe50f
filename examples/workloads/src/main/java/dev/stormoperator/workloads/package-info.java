/**
 * Topologies whose load can be set: to try storm-operator on, to show it, to measure it.
 *
 * <p>Each is one class with a main method ({@code --help} tells its options); their components can also be wired with
 * Flux. See examples/README.md.
 */
package dev.stormoperator.workloads;
