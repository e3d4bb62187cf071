# The formula of a tap. `scripts/release.py formula` fills in the words between @ signs.
# Its packages come from the lock inside the source archive, so that a formula needs no list of its own.
class Dragoman < Formula
  include Language::Python::Virtualenv

  desc "Point any coding agent at any model; every tool call arrives whole, valid and once"
  homepage "@REPOSITORY@"
  url "@REPOSITORY@/releases/download/v@VERSION@/@ARCHIVE@"
  sha256 "@SHA256@"
  license "MIT"

  depends_on "python@3.13"

  def install
    venv = virtualenv_create(libexec, "python3.13", system_site_packages: false)
    system libexec/"bin/python", "-m", "ensurepip"
    system libexec/"bin/python", "-m", "pip", "install", "--constraint", "requirements.lock", buildpath
    bin.install_symlink libexec/"bin/dragoman"
    generate_completions_from_executable(bin/"dragoman", shell_parameter_format: :click)
    venv
  end

  service do
    run [opt_bin/"dragoman", "serve"]
    keep_alive true
    log_path var/"log/dragoman.log"
    error_log_path var/"log/dragoman.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/dragoman --version")
    assert_match "there is no upstream", shell_output("#{bin}/dragoman check 2>&1", 1)
  end
end
