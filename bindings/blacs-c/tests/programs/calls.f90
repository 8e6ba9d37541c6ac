! The routines as a Fortran 77 program calls them, chosen by precision.
module calls
   use matrices
   implicit none
contains
   subroutine send(p, ctxt, uplo, diag, m, n, lda, r, c)
      integer, intent(in) :: p, ctxt, m, n, lda, r, c
      character(len=*), intent(in) :: uplo, diag
      if (uplo == ' ') then
         select case (p)
         case (1); call igesd2d(ctxt, m, n, ia(start), lda, r, c)
         case (2); call sgesd2d(ctxt, m, n, sa(start), lda, r, c)
         case (3); call dgesd2d(ctxt, m, n, da(start), lda, r, c)
         case (4); call cgesd2d(ctxt, m, n, ca(start), lda, r, c)
         case (5); call zgesd2d(ctxt, m, n, za(start), lda, r, c)
         end select
      else
         select case (p)
         case (1); call itrsd2d(ctxt, uplo, diag, m, n, ia(start), lda, r, c)
         case (2); call strsd2d(ctxt, uplo, diag, m, n, sa(start), lda, r, c)
         case (3); call dtrsd2d(ctxt, uplo, diag, m, n, da(start), lda, r, c)
         case (4); call ctrsd2d(ctxt, uplo, diag, m, n, ca(start), lda, r, c)
         case (5); call ztrsd2d(ctxt, uplo, diag, m, n, za(start), lda, r, c)
         end select
      end if
   end subroutine

   subroutine receive(p, ctxt, uplo, diag, m, n, lda, r, c)
      integer, intent(in) :: p, ctxt, m, n, lda, r, c
      character(len=*), intent(in) :: uplo, diag
      if (uplo == ' ') then
         select case (p)
         case (1); call igerv2d(ctxt, m, n, ia(start), lda, r, c)
         case (2); call sgerv2d(ctxt, m, n, sa(start), lda, r, c)
         case (3); call dgerv2d(ctxt, m, n, da(start), lda, r, c)
         case (4); call cgerv2d(ctxt, m, n, ca(start), lda, r, c)
         case (5); call zgerv2d(ctxt, m, n, za(start), lda, r, c)
         end select
      else
         select case (p)
         case (1); call itrrv2d(ctxt, uplo, diag, m, n, ia(start), lda, r, c)
         case (2); call strrv2d(ctxt, uplo, diag, m, n, sa(start), lda, r, c)
         case (3); call dtrrv2d(ctxt, uplo, diag, m, n, da(start), lda, r, c)
         case (4); call ctrrv2d(ctxt, uplo, diag, m, n, ca(start), lda, r, c)
         case (5); call ztrrv2d(ctxt, uplo, diag, m, n, za(start), lda, r, c)
         end select
      end if
   end subroutine

   subroutine broadcast(p, ctxt, scope, top, uplo, diag, m, n, lda)
      integer, intent(in) :: p, ctxt, m, n, lda
      character(len=*), intent(in) :: scope, top, uplo, diag
      if (uplo == ' ') then
         select case (p)
         case (1); call igebs2d(ctxt, scope, top, m, n, ia(start), lda)
         case (2); call sgebs2d(ctxt, scope, top, m, n, sa(start), lda)
         case (3); call dgebs2d(ctxt, scope, top, m, n, da(start), lda)
         case (4); call cgebs2d(ctxt, scope, top, m, n, ca(start), lda)
         case (5); call zgebs2d(ctxt, scope, top, m, n, za(start), lda)
         end select
      else
         select case (p)
         case (1); call itrbs2d(ctxt, scope, top, uplo, diag, m, n, ia(start), lda)
         case (2); call strbs2d(ctxt, scope, top, uplo, diag, m, n, sa(start), lda)
         case (3); call dtrbs2d(ctxt, scope, top, uplo, diag, m, n, da(start), lda)
         case (4); call ctrbs2d(ctxt, scope, top, uplo, diag, m, n, ca(start), lda)
         case (5); call ztrbs2d(ctxt, scope, top, uplo, diag, m, n, za(start), lda)
         end select
      end if
   end subroutine

   subroutine receive_broadcast(p, ctxt, scope, top, uplo, diag, m, n, lda, r, c)
      integer, intent(in) :: p, ctxt, m, n, lda, r, c
      character(len=*), intent(in) :: scope, top, uplo, diag
      if (uplo == ' ') then
         select case (p)
         case (1); call igebr2d(ctxt, scope, top, m, n, ia(start), lda, r, c)
         case (2); call sgebr2d(ctxt, scope, top, m, n, sa(start), lda, r, c)
         case (3); call dgebr2d(ctxt, scope, top, m, n, da(start), lda, r, c)
         case (4); call cgebr2d(ctxt, scope, top, m, n, ca(start), lda, r, c)
         case (5); call zgebr2d(ctxt, scope, top, m, n, za(start), lda, r, c)
         end select
      else
         select case (p)
         case (1); call itrbr2d(ctxt, scope, top, uplo, diag, m, n, ia(start), lda, r, c)
         case (2); call strbr2d(ctxt, scope, top, uplo, diag, m, n, sa(start), lda, r, c)
         case (3); call dtrbr2d(ctxt, scope, top, uplo, diag, m, n, da(start), lda, r, c)
         case (4); call ctrbr2d(ctxt, scope, top, uplo, diag, m, n, ca(start), lda, r, c)
         case (5); call ztrbr2d(ctxt, scope, top, uplo, diag, m, n, za(start), lda, r, c)
         end select
      end if
   end subroutine

   subroutine add(p, ctxt, scope, top, m, n, lda, r, c)
      integer, intent(in) :: p, ctxt, m, n, lda, r, c
      character(len=*), intent(in) :: scope, top
      select case (p)
      case (1); call igsum2d(ctxt, scope, top, m, n, ia(start), lda, r, c)
      case (2); call sgsum2d(ctxt, scope, top, m, n, sa(start), lda, r, c)
      case (3); call dgsum2d(ctxt, scope, top, m, n, da(start), lda, r, c)
      case (4); call cgsum2d(ctxt, scope, top, m, n, ca(start), lda, r, c)
      case (5); call zgsum2d(ctxt, scope, top, m, n, za(start), lda, r, c)
      end select
   end subroutine

   subroutine largest(p, ctxt, scope, top, m, n, lda, rows, cols, ldia, r, c)
      integer, intent(in) :: p, ctxt, m, n, lda, ldia, r, c
      character(len=*), intent(in) :: scope, top
      integer, intent(inout) :: rows(*), cols(*)
      select case (p)
      case (1); call igamx2d(ctxt, scope, top, m, n, ia(start), lda, rows, cols, ldia, r, c)
      case (2); call sgamx2d(ctxt, scope, top, m, n, sa(start), lda, rows, cols, ldia, r, c)
      case (3); call dgamx2d(ctxt, scope, top, m, n, da(start), lda, rows, cols, ldia, r, c)
      case (4); call cgamx2d(ctxt, scope, top, m, n, ca(start), lda, rows, cols, ldia, r, c)
      case (5); call zgamx2d(ctxt, scope, top, m, n, za(start), lda, rows, cols, ldia, r, c)
      end select
   end subroutine

   subroutine smallest(p, ctxt, scope, top, m, n, lda, rows, cols, ldia, r, c)
      integer, intent(in) :: p, ctxt, m, n, lda, ldia, r, c
      character(len=*), intent(in) :: scope, top
      integer, intent(inout) :: rows(*), cols(*)
      select case (p)
      case (1); call igamn2d(ctxt, scope, top, m, n, ia(start), lda, rows, cols, ldia, r, c)
      case (2); call sgamn2d(ctxt, scope, top, m, n, sa(start), lda, rows, cols, ldia, r, c)
      case (3); call dgamn2d(ctxt, scope, top, m, n, da(start), lda, rows, cols, ldia, r, c)
      case (4); call cgamn2d(ctxt, scope, top, m, n, ca(start), lda, rows, cols, ldia, r, c)
      case (5); call zgamn2d(ctxt, scope, top, m, n, za(start), lda, rows, cols, ldia, r, c)
      end select
   end subroutine
end module
