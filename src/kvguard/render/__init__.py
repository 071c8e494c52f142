"""Renderers: one immutable verdict to what a terminal, a pipeline or a program reads; none decides anything."""
