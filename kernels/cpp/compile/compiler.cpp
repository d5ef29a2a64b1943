// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/compile/compiler.hpp"

#include "kernels/cpp/compile/diagnostics.hpp"
#include "kernels/cpp/compile/names.hpp"
#include "kernels/cpp/compile/preamble.hpp"
#include "kernels/cpp/compile/shadowed_names.hpp"
#include "kernels/cpp/compile/shadowing.hpp"
#include "kernels/cpp/text/cell_source.hpp"

#include <algorithm>
#include <clang/AST/ASTConsumer.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Type.h>
#include <clang/Basic/Version.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendPluginRegistry.h>
#include <clang/Interpreter/CodeCompletion.h>
#include <clang/Interpreter/Interpreter.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/TargetSelect.h>
#include <utility>

namespace cellkeep::cpp {

namespace {

/// Compiled and run after the preamble: the first value of a session is not its slowest. Prints
/// nothing.
constexpr std::string_view kWarmUp = R"(#include <cellkeep/display.hpp>
void cellkeep_warm_up() {
    std::ostringstream out;
    cellkeep::detail::print(out, std::vector<int>{1, 2});
    cellkeep::detail::print(out, std::string("a"));
    cellkeep::detail::print(out, 1.5);
}
int cellkeep_warm = (cellkeep_warm_up(), 0);
)";

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): clang makes the consumer that
// reads them.
/// The consumer before the one that makes code: declarations pass by here first.
Shadowing* g_shadowing = nullptr;
std::uint64_t g_serial = 0;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

class NamingConsumer final : public clang::ASTConsumer {
 public:
    bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
        for (clang::Decl* declaration : group) {
            if (g_shadowing != nullptr) {
                g_shadowing->name(declaration, g_serial);
            }
        }
        return true;
    }
};

/// What a precompiled header brings along, to who makes code of it. Directly, clang's own consumer
/// takes nothing more from there once it has made a module.
class Forwarder final : public clang::ASTConsumer {
 public:
    explicit Forwarder(clang::ASTConsumer& target) : target_(target) {}
    bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
        return target_.HandleTopLevelDecl(group);
    }

 private:
    clang::ASTConsumer& target_;
};

/// clang takes further consumers only from plugins; this plugin is linked in.
class NamingPlugin final : public clang::PluginASTAction {
 public:
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(
        clang::CompilerInstance& /*compiler*/, llvm::StringRef /*file*/) override {
        return std::make_unique<NamingConsumer>();
    }
    bool ParseArgs(
        const clang::CompilerInstance& /*compiler*/,
        const std::vector<std::string>& /*arguments*/) override {
        return true;
    }
    ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<NamingPlugin> g_plugin(
    "cellkeep-names", "gives what is defined again another symbol");

void prepare_target() {
    static const bool done = [] {
        llvm::InitializeNativeTarget();
        llvm::InitializeNativeTargetAsmPrinter();
        llvm::InitializeNativeTargetAsmParser();
        return true;
    }();
    (void)done;
}

}  // namespace

class Compiler::Implementation {
 public:
    std::string start(const CompilerSetup& setup) {
        prepare_target();
        headers_ = setup.headers;
        safely([&] {
            interpreter_ = llvm::expectedToStdOptional(build(setup.precompiled)).value_or(nullptr);
        });
        // It is not there, or the headers are others now: they are read as text.
        if (interpreter_ == nullptr) {
            auto created = build("");
            if (!created) {
                return llvm::toString(created.takeError());
            }
            interpreter_ = std::move(*created);
        }
        // clang's interpreter leaves this out: code is made of what comes from the file as well.
        if (clang::ExternalASTSource* precompiled =
                instance().getASTContext().getExternalSource()) {
            forwarder_.emplace(instance().getASTConsumer());
            precompiled->StartTranslationUnit(&*forwarder_);
        }
        shadowing_.emplace(instance());
        g_shadowing = &*shadowing_;
        auto engine = interpreter_->getExecutionEngine();
        if (!engine) {
            return llvm::toString(engine.takeError());
        }
        if (std::string error = define(*engine, setup); !error.empty()) {
            return error;
        }
        for (const std::string_view text : {preamble(), kWarmUp}) {
            if (std::string error = take(text); !error.empty()) {
                return error;
            }
        }
        return {};
    }

    Compiled compile(std::string_view code, std::uint64_t count) {
        Compiled compiled;
        collector_.begin_cell(cell_file(count));
        const std::string source =
            cell_source(code, cell_file(count), ++g_serial, [this](std::string_view name) {
                return meaning_of(instance(), name);
            });
        const auto text_begin = instance().getSourceManager().getNextLocalOffset();
        std::string said = parse(source);
        compiled.warnings = collector_.warnings();
        // Errors of templates come after the parser has said that all is well.
        if (collector_.has_errors()) {
            compiled.failure = collector_.failure();
            compiled.in_the_way = shadowing_->find(collector_.redefinitions(), text_begin);
        } else if (unit_ == nullptr) {
            compiled.failure = CompileFailure{"CompileError", said, "internal", 0, 0, {said}};
        }
        return compiled;
    }

    std::optional<CompileFailure> run() {
        llvm::Error error = interpreter_->Execute(*unit_);
        unit_ = nullptr;
        if (!error) {
            return std::nullopt;
        }
        const std::string said = llvm::toString(std::move(error));
        CompileFailure failure{"LinkError", said, "link", 0, 0, {}};
        if (!undefined_.empty()) {
            failure.message = "nothing defines " + undefined_;
        }
        failure.traceback = {failure.name + ": " + failure.message};
        return failure;
    }

    bool hide(const std::vector<Shadowed>& shadowed) { return shadowing_->hide(shadowed); }

    std::vector<std::string> complete(
        std::string_view code, std::size_t cursor, std::size_t& start) {
        const std::string before(code.substr(0, cursor));
        g_shadowing = nullptr;  // it does not know the other compiler's declarations
        auto other = build("");
        if (!other) {
            llvm::consumeError(other.takeError());
            return {};
        }
        clang::ReplCodeCompleter completer;
        std::vector<std::string> found;
        // clang 19 takes the column for an offset from the text's beginning, whatever the line.
        completer.codeComplete(
            (*other)->getCompilerInstance(),
            before,
            1,
            static_cast<unsigned>(before.size()) + 1,
            &instance(),
            found);
        start = cursor - std::min(cursor, completer.Prefix.size());
        std::erase_if(found, [&completer](const std::string& name) {
            return !name.starts_with(completer.Prefix) || name.starts_with(kWrapperPrefix) ||
                   name.starts_with("cellkeep_warm");
        });
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        // Its destructor would take the interpreter's own parts with it; this process ends now.
        (void)other->release();
        return found;
    }

    std::optional<std::string> inspect(const std::string& expression) {
        if (const auto found = look_up(instance(), expression); !found.empty()) {
            return describe_all(instance(), found);
        }
        collector_.begin_cell("inspection");
        (void)parse("using cellkeep_inspected = decltype((" + expression + "));");
        if (unit_ == nullptr) {
            return std::nullopt;
        }
        const auto found = look_up(instance(), "cellkeep_inspected");
        if (collector_.has_errors() || found.empty()) {
            return std::nullopt;
        }
        const auto* alias = llvm::dyn_cast<clang::TypedefNameDecl>(found.front());
        if (alias == nullptr) {
            return std::nullopt;
        }
        return of_type(alias->getUnderlyingType());
    }

    void end() {
        // The interpreter's destructor runs what cells registered for their end.
        g_shadowing = nullptr;
        shadowing_.reset();
        interpreter_.reset();
    }

 private:
    clang::CompilerInstance& instance() { return *interpreter_->getCompilerInstance(); }

    llvm::Expected<std::unique_ptr<clang::Interpreter>> build(const std::string& precompiled) {
        auto instance = make_compiler(headers_, precompiled);
        if (!instance) {
            return instance.takeError();
        }
        (*instance)->getDiagnostics().setClient(&collector_, false);
        return clang::Interpreter::create(std::move(*instance));
    }

    /// clang 19 crashes when it tidies up after some errors, which it has reported then: what it
    /// has said is as good as if it had not. False if it crashed.
    static bool safely(llvm::function_ref<void()> work) {
        llvm::CrashRecoveryContext::Enable();
        llvm::CrashRecoveryContext recovery;
        const bool survived = recovery.RunSafely(work);
        llvm::CrashRecoveryContext::Disable();
        return survived;
    }

    /// Sets unit_, or says why not.
    std::string parse(const std::string& source) {
        std::string said;
        unit_ = nullptr;
        const bool survived = safely([&] {
            auto unit = interpreter_->Parse(source);
            if (unit) {
                unit_ = &*unit;
            } else {
                said = llvm::toString(unit.takeError());
            }
        });
        return survived ? said : "clang crashed while it read the cell";
    }

    std::string define(llvm::orc::LLJIT& engine, const CompilerSetup& setup) {
        llvm::orc::SymbolMap symbols;
        for (const auto& [name, address] : setup.functions) {
            symbols[engine.mangleAndIntern(name)] = {
                llvm::orc::ExecutorAddr::fromPtr(address),
                llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
        }
        llvm::Error error =
            engine.getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols)));
        if (error) {
            return llvm::toString(std::move(error));
        }
        engine.getExecutionSession().setErrorReporter([this](llvm::Error problem) {
            llvm::handleAllErrors(
                std::move(problem),
                [this](const llvm::orc::SymbolsNotFound& missing) {
                    for (const auto& symbol : missing.getSymbols()) {
                        undefined_ += (undefined_.empty() ? "" : ", ") +
                                      without_tags(llvm::demangle((*symbol).str()));
                    }
                },
                [](const llvm::ErrorInfoBase&) { /* run() has it as its own error */ });
        });
        return {};
    }

    /// A text of ours; what is wrong with it.
    std::string take(std::string_view text) {
        collector_.begin_cell("preamble");
        llvm::Error error = interpreter_->ParseAndExecute(text);
        if (collector_.has_errors()) {
            llvm::consumeError(std::move(error));
            std::string said;
            for (const std::string& line : collector_.failure().traceback) {
                said += line + "\n";
            }
            return said;
        }
        if (!error) {
            return {};
        }
        const std::string said = llvm::toString(std::move(error));
        return undefined_.empty() ? said : "nothing defines " + undefined_;
    }

    std::string of_type(clang::QualType type) {
        const auto* deduced = type->getAs<clang::DecltypeType>();
        const clang::Expr* expression =
            deduced == nullptr ? nullptr : deduced->getUnderlyingExpr()->IgnoreParenImpCasts();
        const clang::ValueDecl* value = nullptr;
        if (const auto* member = llvm::dyn_cast_or_null<clang::MemberExpr>(expression)) {
            value = member->getMemberDecl();
        } else if (const auto* named = llvm::dyn_cast_or_null<clang::DeclRefExpr>(expression)) {
            value = named->getDecl();
        }
        if (value != nullptr) {
            return describe(instance(), *value);
        }
        const clang::PrintingPolicy policy(instance().getLangOpts());
        const clang::QualType bare =
            expression == nullptr ? type.getCanonicalType() : expression->getType();
        return "type: " + without_tags(bare.getAsString(policy));
    }

    std::string headers_;
    DiagnosticCollector collector_;  // the interpreter's, which is destroyed first
    std::string undefined_;          // symbols that the linker missed
    std::optional<Forwarder> forwarder_;
    std::unique_ptr<clang::Interpreter> interpreter_;
    std::optional<Shadowing> shadowing_;
    clang::PartialTranslationUnit* unit_ = nullptr;
};

Compiler::Compiler(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}

Compiler::~Compiler() = default;

std::unique_ptr<Compiler> Compiler::create(const CompilerSetup& setup, std::string& error) {
    auto implementation = std::make_unique<Implementation>();
    error = implementation->start(setup);
    if (!error.empty()) {
        return nullptr;
    }
    return std::unique_ptr<Compiler>(new Compiler(std::move(implementation)));
}

std::string Compiler::version() {
    return CLANG_VERSION_STRING;
}

Compiled Compiler::compile(std::string_view code, std::uint64_t count) {
    return implementation_->compile(code, count);
}

std::optional<CompileFailure> Compiler::run() {
    return implementation_->run();
}

bool Compiler::hide(const std::vector<Shadowed>& shadowed) {
    return implementation_->hide(shadowed);
}

std::vector<std::string> Compiler::complete(
    std::string_view code, std::size_t cursor, std::size_t& start) {
    return implementation_->complete(code, cursor, start);
}

std::optional<std::string> Compiler::inspect(const std::string& expression) {
    return implementation_->inspect(expression);
}

void Compiler::end() {
    implementation_->end();
}

}  // namespace cellkeep::cpp
