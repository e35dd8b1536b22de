"""The plants at work: rows become windows in one thread, which stores, and what changed goes to all who listen.

engine: what callers on the loop use. worker: the thread. plant: one plant, and how it is made or gets another model.
feeds: sources as tasks. views: what others see. past: what they ask of the past. tidying: what is too old is deleted.
"""
