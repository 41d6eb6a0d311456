package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
)

// prefix is the prefix of the names that compile.go declares.
const prefix = "mutant__"

// condition negates the condition of an if or a for. For == and != that is the same as a swap.
func (f *finder) condition(cond ast.Expr) {
	if cond == nil || f.info.Types[cond].Value != nil {
		return
	}
	if b, ok := ast.Unparen(cond).(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return
	}
	f.add(cond.Pos(), cond.End(), "!("+f.of(cond)+")", "("+prefix+"is(#) != (%s))", cond)
}

func swapped(op token.Token) (other token.Token, ok bool) {
	pairs := [][2]token.Token{{token.LSS, token.LEQ}, {token.GTR, token.GEQ}, {token.EQL, token.NEQ}, {token.LAND, token.LOR}}
	for _, p := range pairs {
		if i := slices.Index(p[:], op); i >= 0 {
			return p[1-i], true
		}
	}
	return op, false
}

func (f *finder) binary(b *ast.BinaryExpr) {
	switch other, ok := swapped(b.Op); {
	case ok:
		// Both sides appear twice but are evaluated once, as only one branch is taken.
		f.add(b.Pos(), b.End(), f.of(b.X)+quote(other)+f.of(b.Y),
			"("+prefix+"is(#) && (%s"+quote(other)+"%s) || !"+prefix+"is(#) && (%s"+quote(b.Op)+"%s))", b.X, b.Y, b.X, b.Y)
	case !is(f.info.TypeOf(b), types.IsInteger):
	case b.Op == token.ADD:
		f.add(b.Pos(), b.End(), f.of(b.X)+" - "+f.of(b.Y), prefix+"add(#, %s, %s)", b.X, b.Y)
	case b.Op == token.SUB:
		f.add(b.Pos(), b.End(), f.of(b.X)+" + "+f.of(b.Y), prefix+"sub(#, %s, %s)", b.X, b.Y)
	}
}

// constant changes a number to the next one. A size or a duration is doubled: one byte or
// nanosecond more would have no visible effect.
func (f *finder) constant(e ast.Expr) {
	t := f.info.TypeOf(e)
	if !is(t, types.IsInteger) {
		return
	}
	name := f.qualified(t)
	if name == "" {
		return
	}
	by := " + 1"
	if n, ok := constant.Int64Val(f.info.Types[e].Value); !ok || n >= 1000 {
		by = " * 2"
	}
	f.add(e.Pos(), e.End(), f.of(e)+by, prefix+"or["+name+"](#, %s, (%s)"+by+")", e, e)
}

// statements leaves out one statement of a list.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if c, ok := s.X.(*ast.CallExpr); ok && !f.quiet(c) && !locks(c) {
				f.leaveOut(s)
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE && !slices.ContainsFunc(s.Lhs, local) {
				f.leaveOut(s)
			}
		case *ast.IncDecStmt:
			if !local(s.X) {
				f.leaveOut(s)
			}
		case *ast.BranchStmt:
			if s.Tok == token.BREAK || s.Tok == token.CONTINUE {
				f.leaveOut(s)
			}
		}
	}
}

func (f *finder) leaveOut(s ast.Stmt) {
	f.add(s.Pos(), s.End(), "nothing", "if !"+prefix+"is(#) { %s }", s)
}

// local reports that the target of an assignment is neither a field nor an element.
func local(e ast.Expr) bool {
	switch ast.Unparen(e).(type) {
	case *ast.SelectorExpr, *ast.IndexExpr:
		return false
	}
	return true
}

// locks reports calls whose omission only makes the next one hang or panic.
func locks(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, s.Sel.Name)
}

// swallow returns nil instead of an error.
func (f *finder) swallow(r *ast.ReturnStmt) {
	if len(r.Results) == 0 {
		return
	}
	last := r.Results[len(r.Results)-1]
	tv := f.info.Types[last]
	if tv.IsNil() || tv.Type == nil || !types.Implements(tv.Type, errorType()) {
		return
	}
	f.add(last.Pos(), last.End(), "nil", prefix+"or[error](#, %s, nil)", last)
}

func errorType() *types.Interface {
	return types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
}

// returnAtOnce makes a function without results do nothing.
func (f *finder) returnAtOnce(d *ast.FuncDecl) {
	if d.Type.Results == nil && len(d.Body.List) > 1 {
		f.add(d.Body.Lbrace+1, d.Body.Lbrace+1, "return at once", " if "+prefix+"is(#) { return };")
	}
}
