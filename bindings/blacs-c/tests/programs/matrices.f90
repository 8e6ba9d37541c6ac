! One matrix in each precision, in a vector with guard cells around it; expected values as complex
! numbers of small integers, so that sums are exact.
module matrices
   implicit none
   integer, parameter :: wide = kind((0d0, 0d0)), cells = 160, start = 9
   character(len=5), parameter :: precisions = 'isdcz'
   character(len=17), parameter :: topologies = ' idsm123456789tfh'
   integer :: ia(cells)
   real :: sa(cells)
   double precision :: da(cells)
   complex :: ca(cells)
   complex(wide) :: za(cells), want(cells)
   integer :: checks(11, 5) = 0, failures(11, 5) = 0
   character(len=6), parameter :: routines(11) = [character(len=6) :: 'gesd2d', 'gerv2d', &
      'trsd2d', 'trrv2d', 'gebs2d', 'gebr2d', 'trbs2d', 'trbr2d', 'gsum2d', 'gamx2d', 'gamn2d']
contains
   subroutine put(p, k, v)
      integer, intent(in) :: p, k
      complex(wide), intent(in) :: v
      select case (p)
      case (1); ia(k) = nint(real(v))
      case (2); sa(k) = real(real(v))
      case (3); da(k) = real(v)
      case (4); ca(k) = cmplx(v)
      case default; za(k) = v
      end select
   end subroutine

   complex(wide) function get(p, k)
      integer, intent(in) :: p, k
      select case (p)
      case (1); get = ia(k)
      case (2); get = sa(k)
      case (3); get = da(k)
      case (4); get = ca(k)
      case default; get = za(k)
      end select
   end function

   ! What a process holds at (i, j), counted from 0; small values tie often in magnitude.
   complex(wide) function value_of(p, key, process, i, j)
      integer, intent(in) :: p, key, process, i, j
      integer :: re, im
      re = mod(7*key + 5*process + 3*i + 11*j + i*j, 9) - 4
      im = mod(key + 4*process + 5*i + 2*j, 7) - 3
      if (p < 4) im = 0
      value_of = cmplx(re, im, wide)
   end function

   ! Guard cells everywhere, then this process's values.
   subroutine fill(p, key, process, m, n, lda)
      integer, intent(in) :: p, key, process, m, n, lda
      integer :: i, j, k
      do k = 1, cells
         call put(p, k, cmplx(-900000 - k, merge(0, 900000 + k, p < 4), wide))
      end do
      do j = 0, n - 1
         do i = 0, m - 1
            call put(p, start + j*lda + i, value_of(p, key, process, i, j))
         end do
      end do
      do k = 1, cells
         want(k) = get(p, k)
      end do
   end subroutine

   logical function inside(uplo, diag, m, n, i, j)
      character, intent(in) :: uplo, diag
      integer, intent(in) :: m, n, i, j
      integer :: on
      inside = .true.
      if (uplo == 'U') then
         on = j + max(m - n, 0)
         inside = i < on .or. (i == on .and. diag /= 'U')
      else if (uplo == 'L' .or. uplo == 'l') then
         on = j - max(n - m, 0)
         inside = i > on .or. (i == on .and. diag /= 'U')
      end if
   end function

   ! The values of another process take the place of one's own within the part that travels.
   subroutine expect(p, key, process, uplo, diag, m, n, lda)
      integer, intent(in) :: p, key, process, m, n, lda
      character, intent(in) :: uplo, diag
      integer :: i, j
      do j = 0, n - 1
         do i = 0, m - 1
            if (inside(uplo, diag, m, n, i, j)) &
               want(start + j*lda + i) = value_of(p, key, process, i, j)
         end do
      end do
   end subroutine

   subroutine check(routine, p, good, text)
      integer, intent(in) :: routine, p
      logical, intent(in) :: good
      character(len=*), intent(in) :: text
      checks(routine, p) = checks(routine, p) + 1
      if (good) return
      failures(routine, p) = failures(routine, p) + 1
      if (sum(failures) <= 40) print '(5a)', 'FAIL ', precisions(p:p), routines(routine), ' ', text
   end subroutine

   subroutine check_matrix(routine, p, text)
      integer, intent(in) :: routine, p
      character(len=*), intent(in) :: text
      character(len=100) :: more
      integer :: k
      do k = 1, cells
         if (get(p, k) == want(k)) cycle
         write (more, '(a,i0,a,2f9.0,a,2f9.0)') ' cell ', k, ' is', get(p, k), ' not', want(k)
         call check(routine, p, .false., text//more)
         return
      end do
      call check(routine, p, .true., text)
   end subroutine
end module
