"""One scratch project for all tests here: its kernels are compiled once."""

from __future__ import annotations

import pytest

from tests.vendoring.project import Project, make_project


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("vendoring") / "project")
